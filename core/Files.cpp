//===- Files.cpp - system calls on files, interrupted or not --------------===//
#include "core/Files.h"

#include "core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace ds {

int openRegularFile(const std::string &path) {
  const int file = openFile(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // opening a pipe returns
  struct stat status;
  if (file < 0 || (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)))
    return file;
  ::close(file);
  if (!S_ISDIR(status.st_mode))
    throw Error(path + " is not a regular file");
  errno = EISDIR;
  return -1;
}

int openFile(const char *path, int flags, mode_t mode) noexcept {
  int file = -1;
  do
    file = ::open(path, flags, mode);
  while (file < 0 && errno == EINTR);
  return file;
}

bool writeAll(int file, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return false;
    bytes = bytes.subspan(size_t(written));
  }
  return true;
}

std::optional<std::string> readWhole(const std::string &path, size_t limit) {
  constexpr size_t pieceBytes = size_t(1) << 16;
  const int file = openRegularFile(path);
  if (file < 0)
    return std::nullopt;
  std::string text;
  ssize_t got = 1;
  while (got != 0 && text.size() < limit) {
    const size_t before = text.size();
    text.resize(before + std::min(pieceBytes, limit - before));
    do
      got = ::read(file, text.data() + before, text.size() - before);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
      const int error = errno;
      ::close(file);
      errno = error;
      return std::nullopt;
    }
    text.resize(before + size_t(got));
  }
  ::close(file);
  return text;
}

/// Nothing where nothing is.
static std::optional<mode_t> kindOf(const std::filesystem::path &path) {
  struct stat status;
  if (::stat(path.c_str(), &status) == 0)
    return status.st_mode;
  if (errno != ENOENT && errno != ENOTDIR)
    throw Error(path.string() + " cannot be looked at: " + std::strerror(errno));
  return std::nullopt;
}

bool isFolder(const std::filesystem::path &path) {
  const std::optional<mode_t> kind = kindOf(path);
  return kind && S_ISDIR(*kind);
}

bool isThere(const std::filesystem::path &path) { return kindOf(path).has_value(); }

std::vector<std::filesystem::path> listFolder(const std::filesystem::path &folder) {
  while (true) {
    std::vector<std::filesystem::path> paths;
    std::error_code error;
    const std::filesystem::directory_iterator end;
    for (std::filesystem::directory_iterator at(folder, error); !error && at != end; at.increment(error))
      paths.push_back(at->path());
    if (error == std::errc::interrupted)
      continue;
    if (error)
      throw Error(folder.string() + " cannot be listed: " + error.message());
    std::sort(paths.begin(), paths.end());
    return paths;
  }
}

} // namespace ds
