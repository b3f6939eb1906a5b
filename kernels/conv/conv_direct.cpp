// Convolutions without a product of matrices: for groups of few filters (depthwise ones above all), whose products
// would leave most of a tile empty, and wherever the workspace is too small for packing. Each result is one worker's;
// the inner loop runs along a row of places.
#include "kernels/conv/conv_direct.h"

#include <algorithm>

#define DS_LOOPS "kernels/conv/conv_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

/// body(x, y, count): the element of a channel and the place of a filter where a row of products of window element k
/// begins, and how many there are.
template <typename Body> void forEachTapRow(const Window &w, int64_t k, Body body) {
  const int64_t kz = k / (w.window[1] * w.window[2]), ki = k / w.window[2] % w.window[1], kj = k % w.window[2];
  const Window::Range as = w.placesOf(0, kz), bs = w.placesOf(1, ki), cs = w.placesOf(2, kj);
  if (cs.first >= cs.end)
    return;
  for (int64_t a = as.first; a < as.end; ++a)
    for (int64_t b = bs.first; b < bs.end; ++b)
      body((w.position(0, a, kz) * w.input[1] + w.position(1, b, ki)) * w.input[2] + w.position(2, cs.first, kj),
           (a * w.output[1] + b) * w.output[2] + cs.first, cs.end - cs.first);
}

/// y of one filter of a sample, from all its taps.
template <typename T> class ConvDirect : public Kernel {
public:
  explicit ConvDirect(const ConvForwardCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const int64_t all = call_.groups * call_.filters;
    parallelFor(context, call_.samples * all,
                [&](int64_t piece, int) { convolve(operands, piece / all, piece % all); });
    return Status::success();
  }

private:
  void convolve(std::span<void *const> operands, int64_t sample, int64_t filter) const {
    const Window &w = call_.window;
    const auto *x = static_cast<const T *>(operands[0]) + call_.xOffset(sample, filter / call_.filters);
    const auto *weight = static_cast<const T *>(operands[1]) + filter * call_.taps();
    T *y = static_cast<T *>(operands[call_.y]) + call_.yOffset(sample, 0) + filter * w.outputs();
    std::fill_n(y, w.outputs(), call_.bias ? static_cast<const T *>(operands[2])[filter] : T(0));
    for (int64_t tap = 0; tap < call_.taps(); ++tap)
      forEachTapRow(w, tap % w.windows(), [&](int64_t i, int64_t o, int64_t n) {
        add_(weight[tap], x + tap / w.windows() * w.inputs() + i, w.strides[2], y + o, n);
      });
  }

  ConvForwardCall call_;
  decltype(&baseline::addTapForward<T>) add_ = DS_BEST(addTapForward<T>);
};

/// dx of one channel of a sample, from all filters of its group.
template <typename T> class ConvInputGradDirect : public Kernel {
public:
  explicit ConvInputGradDirect(const ConvCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const int64_t all = call_.groups * call_.channels;
    parallelFor(context, call_.samples * all,
                [&](int64_t piece, int) { carryBack(operands, piece / all, piece % all); });
    return Status::success();
  }

private:
  void carryBack(std::span<void *const> operands, int64_t sample, int64_t channel) const {
    const Window &w = call_.window;
    const int64_t group = channel / call_.channels;
    const auto *dy = static_cast<const T *>(operands[0]) + call_.yOffset(sample, group);
    const auto *weight =
        static_cast<const T *>(operands[1]) + call_.wOffset(group) + channel % call_.channels * w.windows();
    T *dx = static_cast<T *>(operands[2]) + call_.xOffset(sample, 0) + channel * w.inputs();
    std::fill_n(dx, w.inputs(), T(0));
    for (int64_t f = 0; f < call_.filters; ++f)
      for (int64_t k = 0; k < w.windows(); ++k)
        forEachTapRow(w, k, [&](int64_t i, int64_t o, int64_t n) {
          add_(weight[f * call_.taps() + k], dy + f * w.outputs() + o, w.strides[2], dx + i, n);
        });
  }

  ConvCall call_;
  decltype(&baseline::addTapBackward<T>) add_ = DS_BEST(addTapBackward<T>);
};

/// dw of one filter and channel, over all samples.
template <typename T> class ConvWeightGradDirect : public Kernel {
public:
  explicit ConvWeightGradDirect(const ConvCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    parallelFor(context, call_.groups * call_.filters * call_.channels,
                [&](int64_t piece, int) { sum(operands, piece / call_.channels, piece % call_.channels); });
    return Status::success();
  }

private:
  void sum(std::span<void *const> operands, int64_t filter, int64_t channel) const {
    const Window &w = call_.window;
    const int64_t group = filter / call_.filters;
    T *dw = static_cast<T *>(operands[2]) + filter * call_.taps() + channel * w.windows();
    for (int64_t k = 0; k < w.windows(); ++k) {
      double total = 0;
      for (int64_t n = 0; n < call_.samples; ++n) {
        const auto *dy = static_cast<const T *>(operands[0]) + call_.yOffset(n, 0) + filter * w.outputs();
        const auto *x = static_cast<const T *>(operands[1]) + call_.xOffset(n, group) + channel * w.inputs();
        forEachTapRow(w, k,
                      [&](int64_t i, int64_t o, int64_t count) { total += dot_(dy + o, x + i, w.strides[2], count); });
      }
      dw[k] = T(total);
    }
  }

  ConvCall call_;
  decltype(&baseline::dotTap<T>) dot_ = DS_BEST(dotTap<T>);
};

} // namespace

std::unique_ptr<Kernel> makeConvDirect(const ConvForwardCall &call) {
  return makeByFloat<ConvDirect>(call.dtype, call);
}
std::unique_ptr<Kernel> makeConvInputGradDirect(const ConvCall &call) {
  return makeByFloat<ConvInputGradDirect>(call.dtype, call);
}
std::unique_ptr<Kernel> makeConvWeightGradDirect(const ConvCall &call) {
  return makeByFloat<ConvWeightGradDirect>(call.dtype, call);
}

} // namespace ds::kernels
