// cumsum: running sums along one axis, in float64 or 64-bit integers. A thread adds a column in order where columns lie
// side by side; else a block scans a row, a chunk of one element a thread at a time.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/index/search_call.h"

namespace ds::kernels::cuda {

namespace {

template <typename T> using Running = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

template <typename T>
__global__ void __launch_bounds__(blockThreads)
    columnKernel(const T *x, T *y, AxisView view, bool exclusive, bool reverse) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t c = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; c < view.outer * view.inner; c += stride) {
    const int64_t first = c / view.inner * view.length * view.inner + c % view.inner;
    Running<T> sum = 0;
    for (int64_t j = 0; j < view.length; ++j) {
      const int64_t i = first + (reverse ? view.length - 1 - j : j) * view.inner;
      const Running<T> before = sum;
      sum += Running<T>(wide(x[i]));
      y[i] = narrow<T>(exclusive ? before : sum);
    }
  }
}

/// Rows of one piece. Hillis and Steele's scan of a chunk in shared memory, behind the sum of the chunks before it.
template <typename T>
__global__ void __launch_bounds__(blockThreads)
    rowKernel(const T *x, T *y, int64_t rows, int64_t length, bool exclusive, bool reverse) {
  __shared__ Running<T> sums[2][blockThreads];
  const int thread = threadIdx.x;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    Running<T> carried = 0;
    for (int64_t start = 0; start < length; start += blockThreads) {
      const int64_t j = start + thread, i = row * length + (reverse ? length - 1 - j : j);
      const Running<T> own = j < length ? Running<T>(wide(x[i])) : Running<T>(0);
      int from = 0;
      sums[from][thread] = own;
      __syncthreads();
      for (int distance = 1; distance < blockThreads; distance *= 2) {
        sums[1 - from][thread] =
            sums[from][thread] + (thread >= distance ? sums[from][thread - distance] : Running<T>(0));
        from = 1 - from;
        __syncthreads();
      }
      const Running<T> before = thread > 0 ? sums[from][thread - 1] : Running<T>(0);
      if (j < length)
        y[i] = narrow<T>(carried + (exclusive ? before : sums[from][thread]));
      carried += sums[from][blockThreads - 1];
      __syncthreads(); // before sums are made anew
    }
  }
}

} // namespace

std::unique_ptr<Kernel> makeCumSum(const Invocation &invocation, const BuildOptions &) {
  const CumSumCall call{Call(invocation)};
  return withNumber(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      const auto *x = at<const T>(operands, 0);
      auto *y = at<T>(operands, 1);
      const int64_t columns = call.x.outer * call.x.inner;
      if (columns == 0 || call.x.length == 0)
        return;
      if (call.x.inner == 1)
        launch<rowKernel<T>>(blocksFor(columns, 1), blockThreads, streamOf(context), x, y, columns, call.x.length,
                             call.exclusive, call.reverse);
      else
        launch<columnKernel<T>>(blocksFor(columns), blockThreads, streamOf(context), x, y, call.x, call.exclusive,
                                call.reverse);
    });
  });
}

} // namespace ds::kernels::cuda
