//===- ScratchFile.cpp - a file without a name ----------------------------===//
#include "runtime/nvme/ScratchFile.h"

#include "core/Error.h"
#include "core/Files.h"
#include "runtime/nvme/Block.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <stdlib.h>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

namespace ds::runtime {
namespace {

/// Where the file system makes no file without a name, one that loses it at once.
int openUnlinked(const std::string &folder) {
  std::string path;
  int file = -1;
  do {
    path = folder + "/ds-nvme-XXXXXX";
    file = ::mkostemp(path.data(), O_CLOEXEC);
  } while (file < 0 && errno == EINTR);
  if (file >= 0)
    ::unlink(path.c_str());
  return file;
}

/// What the folder's file system has left for this user, if it says so.
std::optional<uint64_t> freeBytes(const std::string &folder) {
  struct statvfs system;
  if (::statvfs(folder.c_str(), &system) != 0 || system.f_blocks == 0)
    return std::nullopt;
  return uint64_t(system.f_bavail) * system.f_frsize;
}

/// What the file system asks of direct reads and writes. Where nobody says: a page, with which all are content.
Alignment directAlignment(int file) {
#ifdef STATX_DIOALIGN // Linux 6.1
  struct statx status;
  if (::statx(file, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 && (status.stx_mask & STATX_DIOALIGN) != 0)
    return {.offset = status.stx_dio_offset_align, .memory = status.stx_dio_mem_align};
#endif
  return {.offset = pageBytes, .memory = pageBytes};
}

bool setDirect(int file, bool direct) {
  const int flags = ::fcntl(file, F_GETFL);
  return flags >= 0 && ::fcntl(file, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

} // namespace

ScratchFile::ScratchFile(const std::string &folder, std::string name, uint64_t bytes) : name_(std::move(name)) {
  open(folder);
  try {
    reserve(folder, bytes);
  } catch (...) { // no destructor runs after a constructor that throws
    ::close(file_);
    throw;
  }
}

ScratchFile::~ScratchFile() { ::close(file_); }

void ScratchFile::open(const std::string &folder) {
  file_ = openFile(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
    file_ = openUnlinked(folder);
  if (file_ < 0)
    throw Error(name_ + " cannot be made: " + std::strerror(errno) + "; a folder that this user may write to would do");
}

/// Before a step is run: a disk that turns out to be full later would end the run in the middle.
void ScratchFile::reserve(const std::string &folder, uint64_t bytes) {
  struct rlimit limit; // beyond it comes a signal, no error
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes)
    throw Error(name_ + " needs " + std::to_string(bytes) + " bytes, but files may have only " +
                std::to_string(limit.rlim_cur) + " here; raise the limit (ulimit -f)");
  const std::optional<uint64_t> free = freeBytes(folder); // before some of it is ours
  if (free && *free < bytes)
    failForRoom(folder, bytes, *free);
  int result = 0;
  do
    result = ::fallocate(file_, 0, 0, off_t(bytes));
  while (result != 0 && errno == EINTR);
  if (result != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
    reserved_ = false;
    result = ::ftruncate(file_, off_t(bytes));
  }
  if (result != 0 && errno == ENOSPC)
    failForRoom(folder, bytes, free.value_or(0));
  if (result != 0)
    throw Error(name_ + " cannot have " + std::to_string(bytes) + " bytes: " + std::strerror(errno) +
                "; a folder of another file system may take them");
}

void ScratchFile::failForRoom(const std::string &folder, uint64_t bytes, uint64_t free) const {
  throw Error(name_ + " needs " + std::to_string(bytes) + " bytes, but " + folder + " has " + std::to_string(free) +
              " available; make room or name a folder of a larger disk");
}

std::optional<Alignment> ScratchFile::goDirect(std::string &refusal) {
  const Alignment alignment = directAlignment(file_);
  if (alignment.offset == 0 || alignment.memory == 0) {
    refusal = "the file system has no direct access to this file";
    return std::nullopt;
  }
  if (pageBytes % alignment.offset != 0) {
    refusal = "direct access would be in units of " + std::to_string(alignment.offset) + " bytes";
    return std::nullopt;
  }
  if (!setDirect(file_, true)) {
    refusal = std::string("the file system refuses direct access: ") + std::strerror(errno);
    return std::nullopt;
  }
  return Alignment{.offset = pageBytes, .memory = alignment.memory};
}

void ScratchFile::goBuffered() noexcept { (void)setDirect(file_, false); }

} // namespace ds::runtime
