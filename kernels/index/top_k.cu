// top_k: the k first of each row in order. A block takes a row and finds one element after the other: each is the
// first, in the order of TopKCall::before, behind the one found before it. No memory beside the result; k passes over
// the row.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/index/search_call.h"

namespace ds::kernels::cuda {

namespace {

/// Whether element a of `row` stands before element b: a strict order of all indices.
template <typename T> __device__ bool before(const T *row, int64_t a, int64_t b, bool smallest) {
  const auto x = wide(row[a]), y = wide(row[b]);
  if (smallest ? isSmaller(x, y) : isLarger(x, y))
    return true;
  return !(smallest ? isSmaller(y, x) : isLarger(y, x)) && a < b;
}

template <typename T>
__global__ void __launch_bounds__(blockThreads)
    topKKernel(const T *x, T *values, int64_t *indices, int64_t rows, int64_t length, int64_t k, bool smallest) {
  __shared__ int64_t found[blockThreads]; // -1: none
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const T *row = x + r * length;
    int64_t previous = -1;
    for (int64_t j = 0; j < k; ++j) {
      int64_t own = -1;
      for (int64_t i = threadIdx.x; i < length; i += blockDim.x)
        if ((previous < 0 || before(row, previous, i, smallest)) && (own < 0 || before(row, i, own, smallest)))
          own = i;
      found[threadIdx.x] = own;
      for (int half = blockThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (int(threadIdx.x) < half) {
          const int64_t other = found[threadIdx.x + half];
          if (other >= 0 && (found[threadIdx.x] < 0 || before(row, other, found[threadIdx.x], smallest)))
            found[threadIdx.x] = other;
        }
      }
      __syncthreads();
      previous = found[0];
      __syncthreads(); // before found is made anew
      if (threadIdx.x == 0) {
        values[r * k + j] = row[previous];
        indices[r * k + j] = previous;
      }
    }
  }
}

} // namespace

std::unique_ptr<Kernel> makeTopK(const Invocation &invocation, const BuildOptions &) {
  const TopKCall call{Call(invocation)};
  return withNumber(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      if (call.rows > 0)
        launch<topKKernel<T>>(blocksFor(call.rows, 1), blockThreads, streamOf(context), at<const T>(operands, 0),
                              at<T>(operands, 1), at<int64_t>(operands, 2), call.rows, call.length, call.k,
                              call.smallest);
    });
  });
}

} // namespace ds::kernels::cuda
