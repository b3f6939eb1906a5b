// conv, conv_input_grad and conv_weight_grad: every product of an element of x, one of w and one of y or dy, in
// float64.
#include "kernels/conv/conv_call.h"

namespace ds::kernels {

namespace {

/// body(x, w, y) with the indices of every product of one sample's group, filter and place.
template <typename Body>
void forEachProduct(const ConvCall &call, int64_t sample, int64_t group, int64_t filter, int64_t place, Body body) {
  const Window &w = call.window;
  const Extents o{place / (w.output[1] * w.output[2]), place / w.output[2] % w.output[1], place % w.output[2]};
  const int64_t y = call.yOffset(sample, group) + filter * w.outputs() + place;
  for (int64_t c = 0; c < call.channels; ++c)
    for (int64_t k = 0; k < w.windows(); ++k) {
      const int64_t z = w.position(0, o[0], k / (w.window[1] * w.window[2]));
      const int64_t i = w.position(1, o[1], k / w.window[2] % w.window[1]), j = w.position(2, o[2], k % w.window[2]);
      if (z < 0 || z >= w.input[0] || i < 0 || i >= w.input[1] || j < 0 || j >= w.input[2])
        continue;
      body(call.xOffset(sample, group) + ((c * w.input[0] + z) * w.input[1] + i) * w.input[2] + j,
           call.wOffset(group) + (filter * call.channels + c) * w.windows() + k, y);
    }
}

/// body(sample, group, filter, place) for every element of y, in order.
template <typename Body> void forEachResult(const ConvCall &call, Body body) {
  for (int64_t n = 0; n < call.samples; ++n)
    for (int64_t g = 0; g < call.groups; ++g)
      for (int64_t f = 0; f < call.filters; ++f)
        for (int64_t o = 0; o < call.window.outputs(); ++o)
          body(n, g, f, o);
}

template <typename T> class ConvReference : public Kernel {
public:
  explicit ConvReference(const ConvForwardCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto *x = static_cast<const T *>(operands[0]), *w = static_cast<const T *>(operands[1]);
    const auto *bias = call_.bias ? static_cast<const T *>(operands[2]) : nullptr;
    auto *y = static_cast<T *>(operands[call_.y]);
    forEachResult(call_, [&](int64_t n, int64_t g, int64_t f, int64_t o) {
      double sum = bias ? bias[g * call_.filters + f] : 0;
      forEachProduct(call_, n, g, f, o, [&](int64_t i, int64_t k, int64_t) { sum += double(x[i]) * w[k]; });
      y[call_.yOffset(n, g) + f * call_.window.outputs() + o] = T(sum);
    });
    return Status::success();
  }

private:
  ConvForwardCall call_;
};

/// Sums into float64 kept by the kernel, for float32 too.
template <typename T> class ConvGradReference : public Kernel {
public:
  ConvGradReference(const ConvCall &call, bool ofInput)
      : call_(call), ofInput_(ofInput),
        sums_(size_t(ofInput ? call.xOffset(call.samples, 0) : call.wOffset(call.groups))) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto *dy = static_cast<const T *>(operands[0]), *other = static_cast<const T *>(operands[1]);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    forEachResult(call_, [&](int64_t n, int64_t g, int64_t f, int64_t o) {
      forEachProduct(call_, n, g, f, o, [&](int64_t i, int64_t k, int64_t y) {
        sums_[size_t(ofInput_ ? i : k)] += double(dy[y]) * other[ofInput_ ? k : i];
      });
    });
    std::copy(sums_.begin(), sums_.end(), static_cast<T *>(operands[2]));
    return Status::success();
  }

private:
  ConvCall call_;
  bool ofInput_;
  std::vector<double> sums_;
};

} // namespace

std::unique_ptr<Kernel> makeConvReference(const Invocation &invocation, const BuildOptions &) {
  const ConvForwardCall call{Call(invocation)};
  return makeByFloat<ConvReference>(call.dtype, call);
}

std::unique_ptr<Kernel> makeConvInputGradReference(const Invocation &invocation, const BuildOptions &) {
  const ConvInputGradCall call{Call(invocation)};
  return makeByFloat<ConvGradReference>(call.dtype, call, true);
}

std::unique_ptr<Kernel> makeConvWeightGradReference(const Invocation &invocation, const BuildOptions &) {
  const ConvWeightGradCall call{Call(invocation)};
  return makeByFloat<ConvGradReference>(call.dtype, call, false);
}

} // namespace ds::kernels
