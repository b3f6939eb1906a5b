//===- Error.h - what prepare, initialize and the tools throw -------------===//
#pragma once

#include <stdexcept>
#include <string>

namespace ds {

/// A refusal in one sentence: the thing by the user's name, the rule, the values, what would work. Lower case, no full
/// stop. `tryLine`, if any, is printed below it as a line to paste.
class Error : public std::runtime_error {
public:
  explicit Error(const std::string &sentence, std::string tryLine = {})
      : std::runtime_error(sentence), tryLine(std::move(tryLine)) {}

  std::string tryLine;
};

} // namespace ds
