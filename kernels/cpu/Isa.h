//===- Isa.h - which instruction set the fast kernels use -----------------===//
//
// The loops of a fast kernel stand in a file of their own, <op>_loops.h, which ForEachIsa.h includes once per
// instruction set, each time into another namespace and under another target. A kernel picks a version by DS_BEST when
// it is built:
//
//   #define DS_LOOPS "kernels/reduce/softmax_loops.h"
//   #include "kernels/cpu/ForEachIsa.h"
//   ... rows_(DS_BEST(softmaxRows<T>)) ...
//
// Loop files use no fused multiply-add (matmul apart) and lanes of a fixed number, so that all versions give the same
// bits; matmul's bits depend on the instruction set.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace ds::kernels {

/// Avx512Bf16: AVX-512 with pairs of bfloat16 numbers, Amx: that and tile registers for them, which products use.
enum class Isa { Baseline, Avx2, Avx512, Avx512Bf16, Amx };

/// The widest set that this machine has, or the one that environment variable DS_CPU_ISA caps it to (baseline, avx2,
/// avx512, avx512_bf16, amx); the same for the whole process.
Isa isa();
/// As DS_CPU_ISA spells it.
const char *nameOf(Isa isa);

} // namespace ds::kernels

#if defined(__x86_64__)
#define DS_BEST(...)                                                                                                   \
  (isa() >= Isa::Avx512 ? &avx512::__VA_ARGS__ : isa() == Isa::Avx2 ? &avx2::__VA_ARGS__ : &baseline::__VA_ARGS__)
#else
#define DS_BEST(...) (&baseline::__VA_ARGS__)
#endif
