//===- ReadOnlyFile.cpp - files that data and weights are read from -------===//
#include "runtime/data/ReadOnlyFile.h"

#include "core/Error.h"
#include "core/Files.h"
#include "core/Status.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace ds::runtime {

ReadOnlyFile::ReadOnlyFile(const std::string &path) : path_(path) {
  file_ = openFile(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a named pipe must not hang us
  if (file_ < 0)
    throw Error(path + " cannot be opened: " + std::strerror(errno));
  struct stat status;
  const bool known = ::fstat(file_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    const Error error(path +
                      (known ? " is not a regular file" : std::string(" cannot be read: ") + std::strerror(errno)));
    ::close(file_);
    throw Error(error);
  }
  bytes_ = uint64_t(status.st_size);
}

ReadOnlyFile::~ReadOnlyFile() {
  if (file_ >= 0)
    ::close(file_);
}

ReadOnlyFile::ReadOnlyFile(ReadOnlyFile &&other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), bytes_(other.bytes_) {}

Status ReadOnlyFile::tryRead(uint64_t offset, std::span<std::byte> target) const noexcept {
  while (!target.empty()) {
    const auto got = ::pread(file_, target.data(), target.size(), int64_t(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return Status::failure("%s cannot be read: %s", path_.c_str(), std::strerror(errno));
    if (got == 0)
      return Status::failure("%s ends before byte %llu: it was cut short while in use", path_.c_str(),
                             static_cast<unsigned long long>(offset) + target.size());
    offset += uint64_t(got);
    target = target.subspan(size_t(got));
  }
  return Status::success();
}

void ReadOnlyFile::read(uint64_t offset, std::span<std::byte> target) const {
  const Status status = tryRead(offset, target);
  if (!status.ok())
    throw Error(status.message());
}

} // namespace ds::runtime
