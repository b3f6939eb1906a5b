//===- HeapWatch.cpp - who allocates, and what stays ----------------------===//
//
// Replaces glibc's allocation functions for the whole process and forwards to them. operator new is libstdc++'s and
// comes through malloc.
//
//===----------------------------------------------------------------------===//
#include "test/unit/runtime/HeapWatch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <malloc.h>
#include <unistd.h>

// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming): glibc's names
extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

namespace ds::test {
namespace {

struct Range {
  uintptr_t begin = 0, end = 0;
  bool contains(const void *address) const {
    const auto value = reinterpret_cast<uintptr_t>(address);
    return value >= begin && value < end;
  }
};

std::atomic<bool> watching = false;
std::atomic<uint64_t> ours = 0, libraries = 0;
std::atomic<int64_t> liveBytes = 0;
Range executable;
std::array<Range, 4> transparent; // libc, libstdc++, libgcc
std::array<void *, 32> firstFrames;
std::atomic<int> firstCount = 0;
thread_local bool inside = false; // backtrace() may allocate the first time

int findRanges(dl_phdr_info *info, size_t, void *state) {
  auto &count = *static_cast<size_t *>(state);
  Range range{UINTPTR_MAX, 0};
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD) {
      range.begin = std::min<uintptr_t>(range.begin, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
      range.end =
          std::max<uintptr_t>(range.end, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
    }
  if (info->dlpi_name[0] == '\0' && executable.end == 0)
    executable = range;
  for (const char *name : {"/libc.so", "/libstdc++.so", "/libgcc_s.so"})
    if (std::strstr(info->dlpi_name, name) != nullptr && count < transparent.size())
      transparent[count++] = range;
  return 0;
}

/// The frame to blame: frames 0 to `own` are the watch itself.
void blame() {
  if (!watching || inside)
    return;
  inside = true;
  std::array<void *, 32> frames;
  const int count = ::backtrace(frames.data(), int(frames.size()));
  for (int i = 2; i < count; ++i) { // 0: here, 1: the allocation function
    bool skip = false;
    for (const Range &range : transparent)
      skip |= range.contains(frames[size_t(i)]);
    if (skip)
      continue;
    if (!executable.contains(frames[size_t(i)])) {
      ++libraries;
    } else if (++ours == 1) {
      firstFrames = frames;
      firstCount = count;
    }
    break;
  }
  inside = false;
}

void *counted(void *block) {
  if (block != nullptr)
    liveBytes += int64_t(::malloc_usable_size(block));
  return block;
}

} // namespace

void watchHeap(bool on) {
  if (on) {
    std::array<void *, 4> frames;
    ::backtrace(frames.data(), int(frames.size())); // loads libgcc now
    size_t count = 0;
    ::dl_iterate_phdr(findRanges, &count);
    ours = libraries = 0;
    firstCount = 0;
  }
  watching = on;
}

HeapCounts heapCounts() { return {ours, libraries, liveBytes}; }

void printFirstOwnAllocation() { ::backtrace_symbols_fd(firstFrames.data(), firstCount, STDERR_FILENO); }

} // namespace ds::test

// noinline: blame() counts frames.
extern "C" {
__attribute__((noinline)) void *malloc(size_t bytes) {
  ds::test::blame();
  return ds::test::counted(__libc_malloc(bytes));
}
__attribute__((noinline)) void *calloc(size_t count, size_t bytes) {
  ds::test::blame();
  return ds::test::counted(__libc_calloc(count, bytes));
}
__attribute__((noinline)) void *realloc(void *block, size_t bytes) {
  ds::test::blame();
  const auto before = int64_t(block != nullptr ? ::malloc_usable_size(block) : 0);
  void *const moved = __libc_realloc(block, bytes);
  if (moved != nullptr || bytes == 0)
    ds::test::liveBytes -= before;
  return ds::test::counted(moved);
}
__attribute__((noinline)) void *memalign(size_t alignment, size_t bytes) {
  ds::test::blame();
  return ds::test::counted(__libc_memalign(alignment, bytes));
}
__attribute__((noinline)) void *aligned_alloc(size_t alignment, size_t bytes) {
  ds::test::blame();
  return ds::test::counted(__libc_memalign(alignment, bytes));
}
__attribute__((noinline)) int posix_memalign(void **block, size_t alignment, size_t bytes) {
  ds::test::blame();
  *block = ds::test::counted(__libc_memalign(alignment, bytes));
  return *block == nullptr ? ENOMEM : 0;
}
void free(void *block) {
  if (block != nullptr)
    ds::test::liveBytes -= int64_t(::malloc_usable_size(block));
  __libc_free(block);
}
}
