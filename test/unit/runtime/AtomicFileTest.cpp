//===- AtomicFileTest.cpp - files that appear whole or not at all ---------===//
#include "core/AtomicFile.h"

#include "test/unit/runtime/Files.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace {

/// What was flushed, in order: "file", "folder".
std::vector<std::string> flushed;

/// What write() of a file with O_DIRECT does here.
enum class Direct { Works, IsRefused, IsShort } direct;
int directWrites;

} // namespace

/// Instead of the C library's, for this program.
extern "C" ssize_t write(int file, const void *bytes, size_t count) {
  if ((::fcntl(file, F_GETFL) & O_DIRECT) != 0) {
    ++directWrites;
    const bool aligned = reinterpret_cast<uintptr_t>(bytes) % 512 == 0 && count % 512 == 0;
    if (direct == Direct::IsRefused || !aligned) {
      errno = EINVAL;
      return -1;
    }
    if (direct == Direct::IsShort) { // all file systems take the first bytes here
      ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) & ~O_DIRECT);
      const ssize_t written = ::syscall(SYS_write, file, bytes, 1000);
      ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) | O_DIRECT);
      return written;
    }
  }
  return ::syscall(SYS_write, file, bytes, count);
}
extern "C" int fsync(int file) {
  struct stat status;
  flushed.emplace_back(::fstat(file, &status) == 0 && S_ISDIR(status.st_mode) ? "folder" : "file");
  return int(::syscall(SYS_fsync, file));
}

namespace ds::test {
namespace {

/// Whether the file system knows O_DIRECT; one in memory need not.
bool takesDirect(const std::string &folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT, 0600);
  if (file >= 0)
    ::close(file);
  return file >= 0;
}

TEST(AtomicFile, FlushesTheFileThenItsFolder) {
  const TemporaryFolder folder;
  flushed.clear();
  writeFileAtomically(folder / "f", "text");
  EXPECT_EQ(flushed, (std::vector<std::string>{"file", "folder"}));
  EXPECT_EQ(readFile(folder / "f"), "text");
}

/// Blocks, their rest, and pieces of all sizes, on a file system that takes O_DIRECT, on one that refuses it and after
/// a short write, whose rest lies nowhere near a sector.
TEST(AtomicFile, WritesTheSameBytesPastTheCache) {
  std::string content;
  for (int i = 0; content.size() < 9000000; ++i)
    content += std::to_string(i);
  for (const Direct how : {Direct::Works, Direct::IsRefused, Direct::IsShort})
    for (const size_t bytes : {size_t(0), size_t(100), size_t(4) << 20, content.size()}) {
      const TemporaryFolder folder;
      direct = how;
      directWrites = 0;
      AtomicFile file(folder / "f", AtomicFile::Cache::Uncached);
      for (size_t at = 0, piece = 1; at < bytes; at += piece, piece = piece * 3 + 1)
        file.write(std::string_view(content).substr(at, std::min(piece, bytes - at)));
      file.commit();
      EXPECT_TRUE(readFile(folder / "f") == content.substr(0, bytes)) << bytes;
      if (bytes >= size_t(4) << 20 && takesDirect(folder.path())) {
        EXPECT_GT(directWrites, 0);
      }
    }
}

} // namespace
} // namespace ds::test
