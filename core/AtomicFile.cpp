//===- AtomicFile.cpp - files that appear whole or not at all -------------===//
#include "core/AtomicFile.h"

#include "core/Error.h"

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

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".XXXXXX") {
  struct stat existing;
  if (::stat(path_.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
    temporary_.clear();
    throw Error("cannot write " + path_ + ": it exists and is not a regular file");
  }
  file_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (file_ < 0)
    fail("create a file beside it");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(file_, 0666 & ~mask) != 0) // mkstemp gives 0600
    fail("set its permissions");
}

AtomicFile::~AtomicFile() {
  if (file_ < 0)
    return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char *action) const {
  throw Error("cannot write " + path_ + ": could not " + action + ": " + std::strerror(errno));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail("write");
    bytes = bytes.subspan(size_t(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(file_) != 0)
    fail("flush");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail("rename");
  ::close(file_);
  file_ = -1;
  // The name is an entry of the folder. Some file systems refuse to flush one, and the file is there by now.
  const std::string folder = std::filesystem::absolute(path_).parent_path();
  const int entry = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (entry < 0)
    return;
  (void)::fsync(entry);
  ::close(entry);
}

void requireWritableFolder(const std::string &path) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  if (!std::filesystem::is_directory(folder) || ::access(folder.c_str(), W_OK) != 0)
    throw Error("cannot write " + path + ": " + folder.string() + " is no folder that may be written to");
}

void writeFileAtomically(const std::string &path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

} // namespace ds
