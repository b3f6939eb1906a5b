//===- ForEachIsa.h - includes DS_LOOPS once per instruction set ----------===//
//
// No include guard on purpose: a source file includes it after naming its loops in DS_LOOPS. Everything that the loops
// use from the standard library is included here, outside of the targets.
//
//===----------------------------------------------------------------------===//
#include "kernels/Numbers.h"
#include "kernels/cpu/Isa.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Iterations touch only their own element, also where input and result are the same memory.
#if defined(__clang__)
#define DS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define DS_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define DS_INLINE __attribute__((always_inline)) inline

#define DS_VECTOR_BYTES 16
namespace ds::kernels::baseline {
#include "kernels/cpu/vector_math.h"
#include DS_LOOPS
} // namespace ds::kernels::baseline
#undef DS_VECTOR_BYTES

#if defined(__x86_64__)
#define DS_VECTOR_BYTES 32
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace ds::kernels::avx2 {
#include "kernels/cpu/vector_math.h"
#include DS_LOOPS
} // namespace ds::kernels::avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef DS_VECTOR_BYTES

#define DS_VECTOR_BYTES 64
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))),                   \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#endif
namespace ds::kernels::avx512 {
#include "kernels/cpu/vector_math.h"
#include DS_LOOPS
} // namespace ds::kernels::avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef DS_VECTOR_BYTES
#endif

#undef DS_LOOPS
