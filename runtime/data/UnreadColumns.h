//===- UnreadColumns.h - what of the data no input takes ------------------===//
#pragma once

#include <set>
#include <string>

namespace ds::runtime {

/// Names each such column once in a run, whose data may come while it goes on.
class UnreadColumns {
public:
  /// A sentence about those of the names (Dataset::unread) that none has named before; or "".
  std::string note(const std::set<std::string> &names) {
    std::string text;
    for (const std::string &name : names)
      if (named_.insert(name).second)
        text += (text.empty() ? "the data has " : ", ") + name;
    return text.empty() ? text : text + ", which the model of this plan does not take";
  }

private:
  std::set<std::string> named_;
};

} // namespace ds::runtime
