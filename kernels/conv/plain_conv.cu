// Our own convolutions: a thread makes one element of y or dx, a block one of dw, whose samples and places its threads
// share. Slow and right.
#include "kernels/conv/plain_conv.h"
#include "kernels/conv/window_space.h"
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Packs.cuh"
#include "kernels/cuda/Reduce.cuh"

namespace ds::kernels::cuda {

namespace {

/// x [samples, groups * channels, in...], w [groups * filters, channels, window...], y [samples, groups * filters,
/// out...].
struct ConvSpace {
  explicit ConvSpace(const ConvCall &call)
      : window(call.window), samples(call.samples), groups(call.groups), channels(call.channels),
        filters(call.filters) {}

  WindowSpace window;
  int64_t samples, groups, channels, filters;
};

template <typename T>
__global__ void __launch_bounds__(blockThreads) forwardKernel(const ConvSpace space, const T *x, const T *w, T *y) {
  const WindowSpace &window = space.window;
  const int64_t outputs = window.outputs(), filters = space.groups * space.filters;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x, total = space.samples * filters * outputs;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += stride) {
    const int64_t o = i % outputs, filter = i / outputs % filters, sample = i / outputs / filters;
    const int64_t place[3] = {o / (window.output[1] * window.output[2]), o / window.output[2] % window.output[1],
                              o % window.output[2]};
    const T *planes = x + (sample * space.groups + filter / space.filters) * space.channels * window.inputs();
    Sum<T> sum = 0;
    for (int64_t c = 0; c < space.channels; ++c)
      window.forEachTap(place, [&](int64_t tap, int64_t at) {
        sum += wide(planes[c * window.inputs() + at]) * wide(w[(filter * space.channels + c) * window.taps() + tap]);
      });
    y[i] = narrow<T>(sum);
  }
}

template <typename T>
__global__ void __launch_bounds__(blockThreads) inputGradKernel(const ConvSpace space, const T *dy, const T *w, T *dx) {
  const WindowSpace &window = space.window;
  const int64_t inputs = window.inputs(), channels = space.groups * space.channels;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x, total = space.samples * channels * inputs;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += stride) {
    const int64_t element = i % inputs, channel = i / inputs % channels, sample = i / inputs / channels;
    const int64_t group = channel / space.channels, c = channel % space.channels;
    Sum<T> sum = 0;
    window.forEachPlaceAround(element, [&](const int64_t *place, int64_t o) {
      const int64_t tap = window.tapAt(place, element);
      if (tap < 0)
        return;
      for (int64_t f = group * space.filters; f < (group + 1) * space.filters; ++f)
        sum += wide(dy[(sample * space.groups * space.filters + f) * window.outputs() + o]) *
               wide(w[(f * space.channels + c) * window.taps() + tap]);
    });
    dx[i] = narrow<T>(sum);
  }
}

template <typename T, typename G>
__global__ void __launch_bounds__(blockThreads)
    weightGradKernel(const ConvSpace space, const T *dy, const T *x, G *dw) {
  const WindowSpace &window = space.window;
  const int64_t taps = window.taps(), outputs = window.outputs();
  const int64_t total = space.groups * space.filters * space.channels * taps;
  for (int64_t i = blockIdx.x; i < total; i += gridDim.x) {
    const int64_t tap = i % taps, c = i / taps % space.channels, filter = i / taps / space.channels;
    const int64_t channel = filter / space.filters * space.channels + c;
    Sum<T> sum = 0;
    for (int64_t j = threadIdx.x; j < space.samples * outputs; j += blockDim.x) {
      const int64_t sample = j / outputs, o = j % outputs, at = window.positionOf(o, tap);
      if (at >= 0)
        sum += wide(dy[(sample * space.groups * space.filters + filter) * outputs + o]) *
               wide(x[(sample * space.groups * space.channels + channel) * window.inputs() + at]);
    }
    sum = blockSum(sum);
    if (threadIdx.x == 0)
      dw[i] = narrow<G>(sum);
  }
}

template <typename T>
__global__ void __launch_bounds__(blockThreads)
    biasKernel(const T *bias, T *y, int64_t elements, int64_t filters, int64_t outputs) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride)
    y[i] = narrow<T>(wide(y[i]) + wide(bias[i / outputs % filters]));
}

template <typename T>
__global__ void __launch_bounds__(blockThreads) widenKernel(const T *from, float *to, int64_t elements, bool packed) {
  constexpr int width = packOf<T>;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x, start = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t packs = packed ? elements / width : 0;
  for (int64_t i = start; i < packs; i += stride) {
    const auto narrow = packAt<width>(from, i);
    Pack<float, width> wider;
    for (int j = 0; j < width; ++j)
      wider.values[j] = wide(narrow.values[j]);
    storePack(to, i, wider);
  }
  for (int64_t i = packs * width + start; i < elements; i += stride)
    to[i] = wide(from[i]);
}

} // namespace

void enqueuePlainConv(ConvKind kind, const ConvCall &call, DType weightType, const void *first, const void *second,
                      void *result, cudaStream_t stream) {
  const ConvSpace space(call);
  const int64_t ys = call.samples * call.groups * call.filters * call.window.outputs();
  const int64_t xs = call.samples * call.groups * call.channels * call.window.inputs();
  const int64_t ws = call.groups * call.filters * call.taps();
  withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto *a = static_cast<const T *>(first), *b = static_cast<const T *>(second);
    if (kind == ConvKind::Forward && ys > 0)
      launch<forwardKernel<T>>(blocksFor(ys), blockThreads, stream, space, a, b, static_cast<T *>(result));
    if (kind == ConvKind::InputGrad && xs > 0)
      launch<inputGradKernel<T>>(blocksFor(xs), blockThreads, stream, space, a, b, static_cast<T *>(result));
    if (kind != ConvKind::WeightGrad || ws == 0)
      return;
    if (weightType == call.dtype)
      launch<weightGradKernel<T, T>>(blocksFor(ws, 1), blockThreads, stream, space, a, b, static_cast<T *>(result));
    else
      launch<weightGradKernel<T, Sum<T>>>(blocksFor(ws, 1), blockThreads, stream, space, a, b,
                                          static_cast<Sum<T> *>(result));
  });
}

void enqueueConvBias(const ConvCall &call, const void *bias, void *y, cudaStream_t stream) {
  const int64_t filters = call.groups * call.filters, outputs = call.window.outputs();
  const int64_t elements = call.samples * filters * outputs;
  if (elements > 0)
    withFloat(call.dtype, [&](auto zero) {
      using T = decltype(zero);
      launch<biasKernel<T>>(blocksFor(elements), blockThreads, stream, static_cast<const T *>(bias),
                            static_cast<T *>(y), elements, filters, outputs);
    });
}

void enqueueWidened(DType type, const void *from, float *to, int64_t elements, cudaStream_t stream) {
  const bool packed = reinterpret_cast<uintptr_t>(from) % 16 == 0;
  withHalf(type, [&](auto zero) {
    using T = decltype(zero);
    launch<widenKernel<T>>(blocksFor(elements, blockThreads * packOf<T>), blockThreads, stream,
                           static_cast<const T *>(from), to, elements, packed);
  });
}

} // namespace ds::kernels::cuda
