//===- AtomicFile.cpp - files that appear whole or not at all -------------===//
#include "core/AtomicFile.h"

#include "core/Error.h"
#include "core/Files.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <span>
#include <stdlib.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

namespace ds {
namespace {

/// A multiple of every disk's sector and of a page; large enough that a disk is busy, small enough for a core's cache.
constexpr size_t blockBytes = size_t(1) << 20, blockAlignment = 4096;

bool setDirect(int file, bool direct) {
  const int flags = ::fcntl(file, F_GETFL);
  return flags >= 0 && ::fcntl(file, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

} // namespace

AtomicFile::AtomicFile(std::string path, Cache cache) : path_(std::move(path)) {
  struct stat existing;
  if (::stat(path_.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
    throw Error("cannot write " + path_ + ": it exists and is not a regular file");
  }
  do {
    temporary_ = path_ + ".XXXXXX";
    file_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  } while (file_ < 0 && errno == EINTR);
  if (file_ < 0)
    fail("create a file beside it");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(file_, 0666 & ~mask) == 0) { // mkstemp gives 0600
    if (cache == Cache::Uncached && setDirect(file_, true))
      block_.reset(static_cast<std::byte *>(std::aligned_alloc(blockAlignment, blockBytes)));
    return;
  }
  const int error = errno;
  discard(); // no destructor runs after a constructor that throws
  errno = error;
  fail("set its permissions");
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (file_ < 0)
    return;
  ::close(file_);
  file_ = -1;
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char *action) const {
  throw Error("cannot write " + path_ + ": could not " + action + ": " + std::strerror(errno));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (block_ && !bytes.empty()) {
    const size_t count = std::min(bytes.size(), blockBytes - filled_);
    std::memcpy(&block_[filled_], bytes.data(), count);
    filled_ += count;
    bytes = bytes.subspan(count);
    if (filled_ == blockBytes)
      writeBlock();
  }
  if (!writeAll(file_, bytes))
    fail("write");
}

/// Some file systems take O_DIRECT and refuse such a write; so do all, of what a short write has left. The cache takes
/// it then, and what follows.
void AtomicFile::writeBlock() {
  const std::span<const std::byte> bytes(block_.get(), std::exchange(filled_, 0));
  const off_t begin = ::lseek(file_, 0, SEEK_CUR);
  if (writeAll(file_, bytes))
    return;
  const int error = errno;
  const off_t reached = ::lseek(file_, 0, SEEK_CUR);
  errno = error;
  if (error != EINVAL || !setDirect(file_, false) || !writeAll(file_, bytes.subspan(size_t(reached - begin))))
    fail("write");
}

void AtomicFile::commit() {
  int flushed = 0;
  if (filled_ > 0) { // less than a block: of any size
    (void)setDirect(file_, false);
    writeBlock();
  }
  do
    flushed = ::fsync(file_);
  while (flushed != 0 && errno == EINTR);
  if (flushed != 0)
    fail("flush");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail("rename");
  ::close(file_);
  file_ = -1;
  // The name is an entry of the folder. Some file systems refuse to flush one, and the file is there by now.
  const std::string folder = std::filesystem::absolute(path_).parent_path();
  const int entry = openFile(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (entry < 0)
    return;
  (void)::fsync(entry);
  ::close(entry);
}

void requireWritableFolder(const std::string &path) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  if (!isFolder(folder))
    throw Error("cannot write " + path + ": " + folder.string() + " is no folder that may be written to");
  if (::access(folder.c_str(), W_OK) != 0)
    throw Error("cannot write " + path + ": " + folder.string() +
                " is no folder that may be written to: " + std::strerror(errno));
}

void writeFileAtomically(const std::string &path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

} // namespace ds
