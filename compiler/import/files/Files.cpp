//===- Files.cpp - opening what the user and the model name -----------------===//
#include "compiler/import/files/Files.h"

#include "compiler/import/files/Failure.h"
#include "core/Files.h"
#include "core/Scripts.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <mutex>
#include <signal.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace ds::import {

std::filesystem::path modelFile(const std::string &path) {
  namespace fs = std::filesystem;
  if (!isFolder(path))
    return path;
  if (isThere(fs::path(path) / "model.onnx"))
    return fs::path(path) / "model.onnx";
  std::vector<fs::path> models;
  for (const fs::path &entry : listFolder(path))
    if (entry.extension() == ".onnx")
      models.push_back(entry);
  if (models.size() == 1)
    return models[0];
  if (models.empty() && isThere(fs::path(path) / "config.json")) {
    const std::string folder = (fs::path(path) / "").parent_path().string(); // without a slash at its end
    throw Failure("'" + path + "' is a saved model without a graph, which needs Python to be exported",
                  scriptCommand("export") + " " + folder + " --out " + folder + "-onnx");
  }
  throw Failure("folder '" + path + "' holds " + (models.empty() ? "no" : "several") +
                " .onnx files; name the model's file");
}

// Non-blocking, so that opening a pipe returns; only regular files pass InputFile's constructor.
static constexpr int openFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

namespace {

/// A mapped file, as a signal handler may look at it.
struct Mapping {
  std::atomic<const char *> begin = nullptr; // nullptr: the slot is free
  size_t bytes = 0;
  const char *name = nullptr; // the InputFile's
};

/// One model at a time, several in tests; what finds no slot ends by SIGBUS itself.
std::array<Mapping, 16> mappings;

void say(std::string_view text) { (void)!::write(STDERR_FILENO, text.data(), text.size()); }

/// A page of a mapped file that cannot be read: the file was cut short, or its disk has failed.
void endOnLostPage(int signal, siginfo_t *information, void *) {
  const auto *address = static_cast<const char *>(information->si_addr);
  for (const Mapping &mapping : mappings) {
    const char *begin = mapping.begin;
    if (begin == nullptr || address < begin || address >= begin + mapping.bytes)
      continue;
    say("error: cannot read '");
    say(mapping.name);
    say("': it was cut short while in use, or its disk has failed\n");
    std::_Exit(1);
  }
  std::signal(signal, SIG_DFL); // not ours: the same access dies by it
}

void watch(void *begin, size_t bytes, const std::string &name) {
  struct sigaction action{};
  action.sa_sigaction = endOnLostPage;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto slot = std::ranges::find_if(mappings, [](const Mapping &mapping) { return mapping.begin == nullptr; });
  if (slot == mappings.end())
    return;
  slot->bytes = bytes;
  slot->name = name.c_str();
  slot->begin = static_cast<const char *>(begin); // last: now the handler sees it
}

void forget(void *begin) {
  for (Mapping &mapping : mappings)
    if (mapping.begin == begin)
      mapping.begin = nullptr;
}

} // namespace

InputFile::InputFile(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {
  struct stat status;
  const bool known = fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    const Failure failure(known ? "'" + name_ + "' is not a regular file"
                                : "cannot read '" + name_ + "': " + std::strerror(errno));
    close(descriptor_);
    throw Failure(failure);
  }
  size_ = uint64_t(status.st_size);
}

InputFile::~InputFile() {
  if (mapping_) {
    forget(mapping_);
    munmap(mapping_, size_);
  }
  close(descriptor_);
}

std::shared_ptr<InputFile> InputFile::open(const std::filesystem::path &path) {
  const int descriptor = openFile(path.c_str(), openFlags);
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
  long descriptor = -1;
  do
    descriptor = syscall(SYS_openat2, folder, location.c_str(), &how, sizeof how);
  while (descriptor < 0 && errno == EINTR);
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

  const int base = openFile(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
    watch(mapping, size_, name_);
  }
  return {static_cast<const char *>(mapping_), size_};
}

std::string safetensorsHeader(const InputFile &file) {
  constexpr uint64_t most = uint64_t(100) << 20; // as the format's own reader allows
  std::array<char, 9> begin{};
  if (file.size() < begin.size())
    return {};
  file.read(0, begin);
  uint64_t bytes = 0;
  for (size_t i = 8; i-- > 0;)
    bytes = bytes << 8 | static_cast<unsigned char>(begin[i]);
  if (begin[8] != '{' || bytes > most || bytes > file.size() - 8)
    return {};
  std::string header(8 + bytes, '\0');
  file.read(0, header);
  return header;
}

} // namespace ds::import
