//===- Allocations.h - counts calls of the heap ---------------------------===//
#pragma once

#include <cstdint>

namespace ds::kernels::test {

/// Whether this build can count: sanitizers bring an allocator of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool countsAllocations = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool countsAllocations = false;
#define DS_SANITIZED_ALLOCATOR
#else
inline constexpr bool countsAllocations = true;
#endif
#else
inline constexpr bool countsAllocations = true;
#endif

/// Calls of malloc and its kin so far, operator new included, on all threads.
int64_t allocationCount();

} // namespace ds::kernels::test
