//===- AppendedFile.cpp - a file that grows by whole records --------------===//
#include "runtime/monitor/AppendedFile.h"

#include "core/Error.h"
#include "core/Files.h"
#include "core/Status.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace ds::runtime {

AppendedFile::AppendedFile(std::string what, std::string path) : what_(std::move(what)), path_(std::move(path)) {
  file_ = openFile(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw Error(what_ + " " + path_ + " cannot be written: " + std::strerror(errno));
}

AppendedFile::~AppendedFile() {
  if (file_ >= 0)
    ::close(file_);
}

bool AppendedFile::isEmpty() const {
  struct stat status;
  if (::fstat(file_, &status) != 0)
    throw Error(what_ + " " + path_ + " cannot be read: " + std::strerror(errno));
  return status.st_size == 0;
}

Status AppendedFile::append(std::string_view record) noexcept {
  const off_t before = ::lseek(file_, 0, SEEK_END);
  if (writeAll(file_, std::as_bytes(std::span(record))))
    return Status::success();
  const Status status = Status::failure("%s %s cannot be written: %s; the run goes on, and what it would say is lost",
                                        what_.c_str(), path_.c_str(), std::strerror(errno));
  if (before >= 0)
    (void)!::ftruncate(file_, before);
  return status;
}

} // namespace ds::runtime
