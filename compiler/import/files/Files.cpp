//===- Files.cpp - opening what the user and the model name -----------------===//
#include "compiler/import/files/Files.h"

#include "compiler/import/files/Failure.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ds::import {

// Non-blocking, so that opening a pipe returns; only regular files pass InputFile's constructor.
static constexpr int openFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

InputFile::InputFile(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {
  struct stat status;
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor_);
    throw Failure("'" + name_ + "' is not a regular file");
  }
  size_ = uint64_t(status.st_size);
}

InputFile::~InputFile() {
  if (mapping_)
    munmap(mapping_, size_);
  close(descriptor_);
}

std::shared_ptr<InputFile> InputFile::open(const std::filesystem::path &path) {
  const int descriptor = ::open(path.c_str(), openFlags);
  if (descriptor < 0)
    throw Failure("cannot open '" + path.string() + "': " + std::strerror(errno));
  return std::make_shared<InputFile>(descriptor, path.string());
}

/// Component by component, for kernels or sandboxes without openat2; no component is ".." here.
static int openWithoutLinks(int folder, const std::filesystem::path &path) {
  int at = dup(folder);
  for (auto part = path.begin(); at >= 0 && part != path.end();) {
    const std::string name = part->string();
    const bool last = ++part == path.end();
    const int next = openat(at, name.c_str(), openFlags | O_NOFOLLOW | (last ? 0 : O_DIRECTORY));
    const int error = errno;
    close(at);
    errno = error;
    at = next;
  }
  return at;
}

static int openIn(int folder, const std::string &location) {
  open_how how{};
  how.flags = openFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const long descriptor = syscall(SYS_openat2, folder, location.c_str(), &how, sizeof how);
  if (descriptor < 0 && (errno == ENOSYS || errno == EPERM))
    return openWithoutLinks(folder, location);
  return int(descriptor);
}

std::shared_ptr<InputFile> InputFile::openBeneath(const std::filesystem::path &folder, const std::string &location) {
  const std::string rule =
      "; external data must be a file in the model's folder, named by a relative path without '..'";
  if (location.empty())
    throw Failure("the location of external data is empty" + rule);
  if (location.find('\0') != std::string::npos)
    throw Failure("the location of external data holds a NUL byte" + rule);
  const std::filesystem::path path(location);
  if (path.is_absolute())
    throw Failure("the location '" + location + "' of external data is absolute" + rule);
  for (const std::filesystem::path &part : path)
    if (part == "..")
      throw Failure("the location '" + location + "' of external data leaves the model's folder" + rule);

  const int base = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (base < 0)
    throw Failure("cannot open the model's folder '" + folder.string() + "': " + std::strerror(errno));
  const int descriptor = openIn(base, location);
  const int error = errno;
  close(base);
  if (descriptor < 0 && (error == ELOOP || error == EXDEV))
    throw Failure("external data '" + location + "' is reached through a symbolic link" + rule);
  if (descriptor < 0)
    throw Failure("cannot open external data '" + location + "' in the model's folder: " + std::strerror(error));
  return std::make_shared<InputFile>(descriptor, location);
}

void InputFile::read(uint64_t offset, std::span<char> into) const {
  while (!into.empty()) {
    const ssize_t count = pread(descriptor_, into.data(), into.size(), off_t(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      throw Failure("cannot read '" + name_ + "' at byte " + std::to_string(offset) + ": " +
                    (count < 0 ? std::strerror(errno) : "the file ends there"));
    into = into.subspan(size_t(count));
    offset += uint64_t(count);
  }
}

std::span<const char> InputFile::map() {
  if (!mapping_ && size_ > 0) {
    void *mapping = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor_, 0);
    if (mapping == MAP_FAILED)
      throw Failure("cannot map '" + name_ + "': " + std::strerror(errno));
    mapping_ = mapping;
  }
  return {static_cast<const char *>(mapping_), size_};
}

} // namespace ds::import
