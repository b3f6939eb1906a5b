//===- fail_allocation.cpp - memory that is not given ---------------------===//
//
// Preloaded: once main() has begun, allocation number DS_FAIL_ALLOCATION fails, and with "5+" the fifth and all that
// follow. Spares calls of malloc itself from where DS_SPARE_CALLERS says, as MLIR's, which do not look at what they
// got. Counts malloc and its kin (operator new calls malloc) and anonymous mmap, of all threads. With
// DS_ALLOCATION_COUNT=FILE the number of allocations is written there when main() returns.
//
//===----------------------------------------------------------------------===//
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// glibc's own, which need no look-up that would allocate.
extern "C" void *__libc_malloc(size_t);           // NOLINT(bugprone-reserved-identifier)
extern "C" void *__libc_calloc(size_t, size_t);   // NOLINT(bugprone-reserved-identifier)
extern "C" void *__libc_realloc(void *, size_t);  // NOLINT(bugprone-reserved-identifier)
extern "C" void *__libc_memalign(size_t, size_t); // NOLINT(bugprone-reserved-identifier)

namespace {

std::atomic<bool> inMain = false;
std::atomic<long> allocations = 0;
long failing = 0; // 0: none
bool andLater = false;

/// Whether malloc was called from a library or program of DS_SPARE_CALLERS, "libMLIR:ds-opt".
bool isSpared(const void *caller) {
  Dl_info place;
  const char *names = std::getenv("DS_SPARE_CALLERS");
  if (caller == nullptr || names == nullptr || ::dladdr(caller, &place) == 0 || place.dli_fname == nullptr)
    return false;
  for (std::string_view rest = names; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(':'));
    if (std::string_view(place.dli_fname).find(name) != std::string_view::npos)
      return true;
    rest.remove_prefix(name.size() < rest.size() ? name.size() + 1 : rest.size());
  }
  return false;
}

bool fails(const void *caller = nullptr) {
  if (!inMain.load(std::memory_order_relaxed))
    return false;
  const long number = ++allocations;
  if (failing == 0 || (andLater ? number < failing : number != failing) || isSpared(caller))
    return false;
  errno = ENOMEM;
  return true;
}

using Main = int (*)(int, char **, char **);
Main realMain = nullptr;

int countedMain(int argc, char **argv, char **environment) {
  if (const char *text = std::getenv("DS_FAIL_ALLOCATION")) {
    failing = std::atol(text);
    andLater = std::strchr(text, '+') != nullptr;
  }
  inMain = true;
  const int code = realMain(argc, argv, environment);
  inMain = false;
  if (const char *path = std::getenv("DS_ALLOCATION_COUNT"))
    if (std::FILE *file = std::fopen(path, "w")) {
      std::fprintf(file, "%ld\n", allocations.load());
      std::fclose(file);
    }
  return code;
}

} // namespace

extern "C" int __libc_start_main(Main main, int argc, char **argv, void (*begin)(), void (*end)(), void (*dynamic)(),
                                 void *stack) { // NOLINT(bugprone-reserved-identifier)
  realMain = main;
  using Start = int (*)(Main, int, char **, void (*)(), void (*)(), void (*)(), void *);
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(countedMain, argc, argv, begin, end, dynamic, stack);
}

extern "C" void *malloc(size_t bytes) { return fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(bytes); }
extern "C" void *calloc(size_t count, size_t bytes) { return fails() ? nullptr : __libc_calloc(count, bytes); }
extern "C" void *realloc(void *old, size_t bytes) { return fails() ? nullptr : __libc_realloc(old, bytes); }
extern "C" void *memalign(size_t alignment, size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
extern "C" void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
extern "C" int posix_memalign(void **result, size_t alignment, size_t bytes) {
  *result = memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}
extern "C" void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if ((flags & MAP_ANONYMOUS) != 0 && fails())
    return MAP_FAILED;
  return reinterpret_cast<void *>(::syscall(SYS_mmap, address, bytes, protection, flags, file, offset)); // NOLINT
}
