// max_pool, average_pool and their gradients on planes of [N, C, ...]. A thread makes one element of the result; a
// gradient's looks at the windows around its element, in row-major order, and for the maximum searches each again for
// its first largest element. torch.nn.functional.max_pool2d, avg_pool2d (count_include_pad=False).
#include "kernels/conv/pool_call.h"
#include "kernels/conv/window_space.h"
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"

namespace ds::kernels::cuda {

namespace {

template <typename T>
__global__ void __launch_bounds__(blockThreads)
    poolKernel(const T *x, T *y, const WindowSpace w, int64_t planes, bool mean) {
  using S = Sum<T>;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x, outputs = w.outputs();
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < planes * outputs; i += stride) {
    const T *plane = x + i / outputs * w.inputs();
    const int64_t o = i % outputs;
    const int64_t place[3] = {o / (w.output[1] * w.output[2]), o / w.output[2] % w.output[1], o % w.output[2]};
    if (mean) {
      S sum = 0;
      w.forEachElement(place, [&](int64_t e) { sum += wide(plane[e]); });
      y[i] = narrow<T>(sum / S(w.countOf(place)));
    } else {
      const int64_t e = w.firstLargest(place, [&](int64_t j) { return wide(plane[j]); });
      y[i] = e < 0 ? narrow<T>(S(-HUGE_VAL)) : plane[e];
    }
  }
}

/// `x` is null for the mean.
template <typename T>
__global__ void __launch_bounds__(blockThreads)
    poolGradKernel(const T *dy, const T *x, T *dx, const WindowSpace w, int64_t planes) {
  using S = Sum<T>;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x, inputs = w.inputs();
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < planes * inputs; i += stride) {
    const int64_t p = i / inputs, element = i % inputs;
    const T *gradients = dy + p * w.outputs();
    S sum = 0;
    w.forEachPlaceAround(element, [&](const int64_t *place, int64_t o) {
      if (w.tapAt(place, element) < 0)
        return;
      if (!x)
        sum += wide(gradients[o]) / S(w.countOf(place));
      else if (w.firstLargest(place, [&](int64_t j) { return wide(x[p * inputs + j]); }) == element)
        sum += wide(gradients[o]);
    });
    dx[i] = narrow<T>(sum);
  }
}

std::unique_ptr<Kernel> makeGrad(const Invocation &invocation, const PoolCall &call, bool mean) {
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    return launching(invocation, [planes = call.planes, window = WindowSpace(call.window),
                                  mean](const CallContext &context, std::span<void *const> operands) {
      if (planes * window.inputs() > 0)
        launch<poolGradKernel<T>>(blocksFor(planes * window.inputs()), blockThreads, streamOf(context),
                                  at<const T>(operands, 0), mean ? nullptr : at<const T>(operands, 1),
                                  at<T>(operands, mean ? 1 : 2), window, planes);
    });
  });
}

} // namespace

std::unique_ptr<Kernel> makePool(const Invocation &invocation, const BuildOptions &) {
  const PoolCall call(Call(invocation), "x", "y");
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    return launching(invocation, [planes = call.planes, window = WindowSpace(call.window),
                                  mean = invocation.kernel == "average_pool"](const CallContext &context,
                                                                              std::span<void *const> operands) {
      if (planes * window.outputs() > 0)
        launch<poolKernel<T>>(blocksFor(planes * window.outputs()), blockThreads, streamOf(context),
                              at<const T>(operands, 0), at<T>(operands, 1), window, planes, mean);
    });
  });
}

std::unique_ptr<Kernel> makeMaxPoolGrad(const Invocation &invocation, const BuildOptions &) {
  return makeGrad(invocation, PoolCall(Call(invocation), "dx", "dy"), false);
}

std::unique_ptr<Kernel> makeAveragePoolGrad(const Invocation &invocation, const BuildOptions &) {
  return makeGrad(invocation, PoolCall(Call(invocation), "dx", "dy"), true);
}

} // namespace ds::kernels::cuda
