//===- RunCase.h - what a conformance case comes to ----------------------------===//
#pragma once

#include <filesystem>
#include <string>

namespace ds::test {

struct Outcome {
  enum class Kind { Passed, Refused, Failed, Skipped } kind = Kind::Passed;
  std::string reason; // the product's sentence, how a result is wrong, or why it is skipped

  /// "passed node/test_abs", "refused node/test_x: ..."
  std::string line(const std::string &name) const;
};

/// Runs the case in a folder through importer, passes, export, runtime and CPU kernels.
Outcome runCase(const std::filesystem::path &folder);

} // namespace ds::test
