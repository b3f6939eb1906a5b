//===- ProcessMemory.cpp - memory as the operating system counts it -------===//
#include "runtime/trace/ProcessMemory.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

namespace ds::runtime {

uint64_t anonymousResidentBytes() noexcept {
  const int file = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return 0;
  std::array<char, 8192> text{};
  const ssize_t length = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  if (length <= 0)
    return 0;
  const char *line = std::strstr(text.data(), "RssAnon:");
  return line == nullptr ? 0 : std::strtoull(line + std::strlen("RssAnon:"), nullptr, 10) * 1024;
}

} // namespace ds::runtime
