//===- NoShadow.cpp - kernels' accesses, unwatched ------------------------===//
//
// For whole runs over the fake runtime, whose memory is what cudaMalloc gave (FakeRuntime.h): the same objects of
// kernels as those that Shadow.cpp watches.
//
//===----------------------------------------------------------------------===//
#include "test/shim/FakeRuntime.h"
#include "test/shim/Machine.h"
#include "test/shim/Shadow.h"

#include <cstring>

namespace shim {

Now now;

void setStacks(const void *, size_t) {}
void setArguments(const void *, size_t) {}
void poisonShared() {}
void checkAtomic(const void *, unsigned) {}
int64_t accesses() { return 0; }
bool isUsable(const void *begin, size_t bytes) { return isAllocated(begin, bytes); }

} // namespace shim

#define DS_ACCESS(bytes)                                                                                               \
  extern "C" void __asan_load##bytes##_noabort(uintptr_t) {}                                                           \
  extern "C" void __asan_store##bytes##_noabort(uintptr_t) {}
DS_ACCESS(1)
DS_ACCESS(2)
DS_ACCESS(4)
DS_ACCESS(8)
DS_ACCESS(16)
#undef DS_ACCESS

extern "C" {
void __asan_loadN_noabort(uintptr_t, size_t) {}
void __asan_storeN_noabort(uintptr_t, size_t) {}
void *__asan_memcpy(void *to, const void *from, size_t bytes) { return std::memcpy(to, from, bytes); }
void *__asan_memmove(void *to, const void *from, size_t bytes) { return std::memmove(to, from, bytes); }
void *__asan_memset(void *to, int value, size_t bytes) { return std::memset(to, value, bytes); }
void __asan_handle_no_return() {}
}
