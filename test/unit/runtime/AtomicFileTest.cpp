//===- AtomicFileTest.cpp - files that appear whole or not at all ---------===//
#include "core/AtomicFile.h"

#include "test/unit/runtime/Files.h"

#include <cerrno>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace {

/// What was flushed, in order: "file", "folder".
std::vector<std::string> flushed;

} // namespace

/// Instead of the C library's, for this program.
extern "C" int fsync(int file) {
  struct stat status;
  flushed.emplace_back(::fstat(file, &status) == 0 && S_ISDIR(status.st_mode) ? "folder" : "file");
  return int(::syscall(SYS_fsync, file));
}

namespace ds::test {
namespace {

TEST(AtomicFile, FlushesTheFileThenItsFolder) {
  const TemporaryFolder folder;
  flushed.clear();
  writeFileAtomically(folder / "f", "text");
  EXPECT_EQ(flushed, (std::vector<std::string>{"file", "folder"}));
  EXPECT_EQ(readFile(folder / "f"), "text");
}

} // namespace
} // namespace ds::test
