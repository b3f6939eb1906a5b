//===- SlowFiles.cpp - a disk that is slow or dead ------------------------===//
//
// Preloaded into ds-run: once DS_SLOW_AFTER reads and writes of files whose names contain DS_SLOW_FILE are done, every
// further one lasts DS_SLOW_MS longer; of reads only those from byte DS_SLOW_FROM on count. Creates DS_SLOW_FLAG when
// the first of those begins. Reads from byte DS_SLOW_HOLD to there wait for that, 5 s at most.
//
//===----------------------------------------------------------------------===//
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

namespace {

std::atomic<long> calls = 0;

long number(const char *name) {
  const char *text = std::getenv(name);
  return text != nullptr ? std::atol(text) : 0;
}

bool isSlow(int file) {
  const char *slow = std::getenv("DS_SLOW_FILE");
  char path[4096] = "";
  return slow != nullptr && ::readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path - 1) >= 0 &&
         std::strstr(path, slow) != nullptr;
}

void awaitFlag() {
  const char *flag = std::getenv("DS_SLOW_FLAG");
  const timespec nap{0, 1000000};
  for (int i = 0; i < 5000 && flag != nullptr && ::access(flag, F_OK) != 0; ++i)
    ::nanosleep(&nap, nullptr);
}

void delay(int file) {
  if (!isSlow(file) || ++calls <= number("DS_SLOW_AFTER"))
    return;
  if (const char *flag = std::getenv("DS_SLOW_FLAG"))
    if (std::FILE *created = std::fopen(flag, "w"))
      std::fclose(created);
  const long milliseconds = number("DS_SLOW_MS");
  timespec left{milliseconds / 1000, milliseconds % 1000 * 1000000};
  while (::nanosleep(&left, &left) != 0) { // signals do not wake a disk
  }
}

template <typename Function> Function next(const char *name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

} // namespace

extern "C" ssize_t pread(int file, void *bytes, size_t count, off_t offset) {
  if (offset >= number("DS_SLOW_FROM"))
    delay(file);
  else if (std::getenv("DS_SLOW_HOLD") != nullptr && offset >= number("DS_SLOW_HOLD") && isSlow(file))
    awaitFlag();
  return next<ssize_t (*)(int, void *, size_t, off_t)>("pread")(file, bytes, count, offset);
}

extern "C" ssize_t read(int file, void *bytes, size_t count) {
  delay(file);
  return next<ssize_t (*)(int, void *, size_t)>("read")(file, bytes, count);
}

extern "C" ssize_t write(int file, const void *bytes, size_t count) {
  delay(file);
  return next<ssize_t (*)(int, const void *, size_t)>("write")(file, bytes, count);
}
