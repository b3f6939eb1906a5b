#include "test/unit/kernels/Allocations.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

std::atomic<int64_t> count{0};

} // namespace

namespace ds::kernels::test {

int64_t allocationCount() { return count.load(); }

TEST(Allocations, AreCounted) {
  if (!countsAllocations)
    GTEST_SKIP() << "the sanitizer's allocator cannot be counted";
  const int64_t before = allocationCount();
  const std::vector<int> vector(100, 1);
  void *aligned = std::aligned_alloc(64, 128);
  const int64_t after = allocationCount();
  std::free(aligned);
  EXPECT_EQ(vector.size(), 100u);
  EXPECT_EQ(after - before, 2);
}

} // namespace ds::kernels::test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(DS_SANITIZED_ALLOCATOR)
// glibc's own functions under their other names, so that the ones below may take the usual ones.
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t bytes) {
  ++count;
  return __libc_malloc(bytes);
}
void *calloc(size_t items, size_t bytes) {
  ++count;
  return __libc_calloc(items, bytes);
}
void *realloc(void *old, size_t bytes) {
  ++count;
  return __libc_realloc(old, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  ++count;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **out, size_t alignment, size_t bytes) {
  ++count;
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : ENOMEM;
}
}
#endif
