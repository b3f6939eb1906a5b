// softmax, log_softmax and their gradients along one axis. Rows in one piece are a block's; else a thread goes along a
// column, and neighbouring threads along neighbouring columns.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Reduce.cuh"
#include "kernels/reduce/online_softmax.h"
#include "kernels/reduce/softmax_call.h"

namespace ds::kernels::cuda {

namespace {

template <typename S> __device__ S softmaxOf(S x, S largest, S sum, bool logarithm) {
  return logarithm ? x - largest - std::log(sum) : std::exp(x - largest) / sum;
}
template <typename S> __device__ S gradOf(S y, S dy, S sum, bool logarithm) {
  return logarithm ? dy - std::exp(y) * sum : y * (dy - sum);
}

template <typename T>
__global__ void __launch_bounds__(mostRowThreads)
    rowKernel(const T *x, T *y, int64_t rows, int64_t length, bool logarithm) {
  using S = Sum<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *from = x + row * length;
    S largest = S(-HUGE_VAL), sum = 0;
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x)
      largest = Larger{}(largest, wide(from[i]));
    largest = blockReduce(largest, Larger{}, S(-HUGE_VAL));
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x)
      sum += std::exp(wide(from[i]) - largest);
    sum = blockSum(sum);
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x)
      y[row * length + i] = narrow<T>(softmaxOf(wide(from[i]), largest, sum, logarithm));
  }
}

template <typename T>
__global__ void __launch_bounds__(blockThreads) columnKernel(const T *x, T *y, AxisView view, bool logarithm) {
  using S = Sum<T>;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t c = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; c < view.outer * view.inner; c += stride) {
    const int64_t first = c / view.inner * view.length * view.inner + c % view.inner;
    S largest = S(-HUGE_VAL), sum = 0;
    for (int64_t k = 0; k < view.length; ++k)
      largest = Larger{}(largest, wide(x[first + k * view.inner]));
    for (int64_t k = 0; k < view.length; ++k)
      sum += std::exp(wide(x[first + k * view.inner]) - largest);
    for (int64_t k = 0; k < view.length; ++k) {
      const int64_t i = first + k * view.inner;
      y[i] = narrow<T>(softmaxOf(wide(x[i]), largest, sum, logarithm));
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(mostRowThreads)
    rowGradKernel(const T *y, const T *dy, T *dx, int64_t rows, int64_t length, bool logarithm) {
  using S = Sum<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t first = row * length;
    S sum = 0;
    for (int64_t i = first + threadIdx.x; i < first + length; i += blockDim.x)
      sum += logarithm ? wide(dy[i]) : wide(y[i]) * wide(dy[i]);
    sum = blockSum(sum);
    for (int64_t i = first + threadIdx.x; i < first + length; i += blockDim.x)
      dx[i] = narrow<T>(gradOf(wide(y[i]), wide(dy[i]), sum, logarithm));
  }
}

template <typename T>
__global__ void __launch_bounds__(blockThreads)
    columnGradKernel(const T *y, const T *dy, T *dx, AxisView view, bool logarithm) {
  using S = Sum<T>;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t c = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; c < view.outer * view.inner; c += stride) {
    const int64_t first = c / view.inner * view.length * view.inner + c % view.inner;
    S sum = 0;
    for (int64_t k = 0; k < view.length; ++k) {
      const int64_t i = first + k * view.inner;
      sum += logarithm ? wide(dy[i]) : wide(y[i]) * wide(dy[i]);
    }
    for (int64_t k = 0; k < view.length; ++k) {
      const int64_t i = first + k * view.inner;
      dx[i] = narrow<T>(gradOf(wide(y[i]), wide(dy[i]), sum, logarithm));
    }
  }
}

bool isEmpty(const AxisView &view) { return view.outer == 0 || view.length == 0 || view.inner == 0; }

} // namespace

std::unique_ptr<Kernel> makeSoftmax(const Invocation &invocation, const BuildOptions &) {
  const SoftmaxCall call(Call(invocation), invocation.kernel);
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      const AxisView &v = call.view;
      const auto *x = at<const T>(operands, 0);
      auto *y = at<T>(operands, 1);
      if (isEmpty(v))
        return;
      if (v.inner == 1)
        launch<rowKernel<T>>(blocksFor(v.outer, 1), rowThreads(v.length), streamOf(context), x, y, v.outer, v.length,
                             call.logarithm);
      else
        launch<columnKernel<T>>(blocksFor(v.outer * v.inner), blockThreads, streamOf(context), x, y, v, call.logarithm);
    });
  });
}

std::unique_ptr<Kernel> makeSoftmaxGrad(const Invocation &invocation, const BuildOptions &) {
  const SoftmaxCall call(Call(invocation), invocation.kernel);
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      const AxisView &v = call.view;
      const auto *y = at<const T>(operands, 0), *dy = at<const T>(operands, 1);
      auto *dx = at<T>(operands, 2);
      if (isEmpty(v))
        return;
      if (v.inner == 1)
        launch<rowGradKernel<T>>(blocksFor(v.outer, 1), rowThreads(v.length), streamOf(context), y, dy, dx, v.outer,
                                 v.length, call.logarithm);
      else
        launch<columnGradKernel<T>>(blocksFor(v.outer * v.inner), blockThreads, streamOf(context), y, dy, dx, v,
                                    call.logarithm);
    });
  });
}

} // namespace ds::kernels::cuda
