//===- Shell.h - tools as a user calls them -------------------------------===//
#pragma once

#include "test/unit/runtime/Files.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>

namespace ds::test {

struct Outcome {
  int code = -1;
  std::string output, errors;
};

/// Runs a shell command line.
inline Outcome shell(const std::string &command) {
  const TemporaryFolder folder;
  const int status = std::system((command + " >" + folder / "out" + " 2>" + folder / "err").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), readFile(folder / "out"),
          readFile(folder / "err")};
}

/// One line that begins "error: ", and a part of it.
inline void expectError(const Outcome &outcome, int code, const std::string &part) {
  EXPECT_EQ(outcome.code, code) << outcome.errors;
  EXPECT_EQ(outcome.errors.substr(0, 7), "error: ") << outcome.errors;
  EXPECT_THAT_CONTAINS(outcome.errors, part);
  EXPECT_LE(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 2) << outcome.errors;
}

} // namespace ds::test
