// arg_max: the index of the largest element along one axis. A block searches a column: its threads take every
// so-manieth element, and their finds meet in a tree; of equal ones the first, or the last, wins wherever they meet.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Reduce.cuh"
#include "kernels/index/search_call.h"

namespace ds::kernels::cuda {

namespace {

template <typename S> struct Found {
  S value;
  int64_t index; ///< -1: nothing
};

template <typename S> __device__ Found<S> better(Found<S> a, Found<S> b, bool last) {
  if (a.index < 0 || b.index < 0)
    return a.index < 0 ? b : a;
  if (isLarger(a.value, b.value))
    return a;
  if (isLarger(b.value, a.value))
    return b;
  return (a.index < b.index) != last ? a : b;
}

template <typename T>
__global__ void __launch_bounds__(blockThreads) argMaxKernel(const T *x, int64_t *y, AxisView view, bool last) {
  using S = Sum<T>;
  __shared__ Found<S> found[blockThreads];
  for (int64_t c = blockIdx.x; c < view.outer * view.inner; c += gridDim.x) {
    const T *column = x + c / view.inner * view.length * view.inner + c % view.inner;
    Found<S> own{S(0), -1};
    for (int64_t k = threadIdx.x; k < view.length; k += blockDim.x)
      own = better(own, {wide(column[k * view.inner]), k}, last);
    found[threadIdx.x] = own;
    for (int half = blockThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (int(threadIdx.x) < half)
        found[threadIdx.x] = better(found[threadIdx.x], found[threadIdx.x + half], last);
    }
    if (threadIdx.x == 0)
      y[c] = found[0].index;
    __syncthreads(); // before found is made anew
  }
}

} // namespace

std::unique_ptr<Kernel> makeArgMax(const Invocation &invocation, const BuildOptions &) {
  const ArgMaxCall call{Call(invocation)};
  return withNumber(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      const int64_t columns = call.x.outer * call.x.inner;
      if (columns > 0)
        launch<argMaxKernel<T>>(blocksFor(columns, 1), blockThreads, streamOf(context), at<const T>(operands, 0),
                                at<int64_t>(operands, 1), call.x, call.last);
    });
  });
}

} // namespace ds::kernels::cuda
