//===- cuda_runtime.h - CUDA's language, on a host ------------------------===//
//
// Included in front of every .cu file that is compiled as C++, as nvcc does. Threads of a block are fibers of one
// thread: barriers and shuffles are rendezvous, and which fiber goes on is a matter of the seed (Machine.h). Only what
// our kernels use is here; another intrinsic does not compile.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "test/shim/FakeRuntime.h"
#include "test/shim/cuda_runtime_api.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(...)
// One block runs at a time: its shared memory is the section's.
#define __shared__ static __attribute__((section("ds_shared")))
// Not to be moved, nor copied into branches: the place of the call is compared between threads.
#ifdef __clang__
#define DS_RENDEZVOUS __attribute__((convergent, noduplicate))
#else // Machine.cpp, which calls none
#define DS_RENDEZVOUS
#endif

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace shim {

struct Launch {
  const char *kernel; ///< __PRETTY_FUNCTION__ of launch()
  dim3 grid, block;
  void (*thread)(const void *arguments); ///< one thread's run
  const void *arguments;
  size_t argumentBytes;
};
void run(const Launch &launch);

DS_RENDEZVOUS void barrier();
/// Leaves `value` to the lanes of `mask` and takes that of lane `source`; all of at most 16 bytes.
DS_RENDEZVOUS void exchange(unsigned mask, const void *value, size_t bytes, int source, void *result);
/// Of the calling thread, in its warp.
int lane();
uint32_t compareAndSwap(uint32_t *address, uint32_t compare, uint32_t value);

template <typename Kernel> struct ParametersOf;
template <typename... Parameters> struct ParametersOf<void (*)(Parameters...)> {
  using Type = std::tuple<Parameters...>;
};

/// kernel<<<blocks, threads, 0, stream>>>(arguments...).
template <auto kernel, typename... Arguments>
void launch(dim3 blocks, dim3 threads, cudaStream_t stream, const Arguments &...arguments) {
  using Parameters = typename ParametersOf<decltype(kernel)>::Type;
  static_assert(sizeof(Parameters) <= 32764, "a launch takes 32,764 bytes of parameters");
  const Parameters parameters(arguments...);
  const char *name = __PRETTY_FUNCTION__;
  const auto thread = [](const void *own) { std::apply(kernel, *static_cast<const Parameters *>(own)); };
  std::vector<const void *> touched;
  std::apply([&](const auto &...own) { (addAddresses(touched, &own, sizeof own), ...); }, parameters);
  (void)submit(stream, {name, [=] { run({name, blocks, threads, thread, &parameters, sizeof(Parameters)}); }, touched});
}

template <typename T> __attribute__((always_inline)) inline T shuffled(unsigned mask, T value, int source) {
  T result;
  exchange(mask, &value, sizeof(T), source, &result);
  return result;
}

} // namespace shim

#define __syncthreads() shim::barrier()

// Compiled without contraction.
inline float __fadd_rn(float a, float b) { return a + b; }
inline double __dadd_rn(double a, double b) { return a + b; }

inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }

template <typename T> __attribute__((always_inline)) inline T __shfl_sync(unsigned mask, T value, int source) {
  return shim::shuffled(mask, value, source);
}
template <typename T> __attribute__((always_inline)) inline T __shfl_xor_sync(unsigned mask, T value, int bits) {
  return shim::shuffled(mask, value, shim::lane() ^ bits);
}
/// A lane below `distance` keeps its own.
template <typename T> __attribute__((always_inline)) inline T __shfl_up_sync(unsigned mask, T value, int distance) {
  return shim::shuffled(mask, value, shim::lane() < distance ? shim::lane() : shim::lane() - distance);
}

inline uint32_t atomicCAS_system(uint32_t *address, uint32_t compare, uint32_t value) {
  return shim::compareAndSwap(address, compare, value);
}
