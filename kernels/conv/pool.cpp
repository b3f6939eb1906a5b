// max_pool, average_pool and their gradients on planes of [N, C, ...].
//
// A plane is one worker's. A row of results is made window element by window element, so that the inner loop runs along
// the row. The maximum's gradient looks for the first largest element again instead of keeping where it was.
// torch.nn.functional.max_pool2d, avg_pool2d (count_include_pad=False).
#include "kernels/conv/pool_call.h"

#include <algorithm>

#define DS_LOOPS "kernels/conv/pool_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

template <typename T> class Pool : public Kernel {
public:
  Pool(const PoolCall &call, bool mean) : call_(call), mean_(mean) {
    if (mean)
      element_ = DS_BEST(addElement<T>);
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *x = static_cast<const T *>(operands[0]);
    auto *y = static_cast<T *>(operands[1]);
    const int64_t inputs = call_.window.inputs(), outputs = call_.window.outputs();
    parallelFor(context, call_.planes, [&](int64_t p, int) { poolPlane(x + p * inputs, y + p * outputs); });
    return Status::success();
  }

private:
  void poolPlane(const T *x, T *y) const {
    const Window &w = call_.window;
    for (int64_t a = 0; a < w.output[0]; ++a)
      for (int64_t b = 0; b < w.output[1]; ++b, y += w.output[2]) {
        const Window::Range as = w.elementsOf(0, a), bs = w.elementsOf(1, b);
        std::fill_n(y, w.output[2], mean_ ? T(0) : -std::numeric_limits<T>::infinity());
        for (int64_t z = as.first; z < as.end; ++z)
          for (int64_t i = bs.first; i < bs.end; ++i)
            poolRow(x + (w.position(0, a, z) * w.input[1] + w.position(1, b, i)) * w.input[2], y);
        if (mean_)
          divideRow(y, (as.end - as.first) * (bs.end - bs.first));
      }
  }

  /// What one row of the input gives to a row of results.
  void poolRow(const T *x, T *y) const {
    const Window &w = call_.window;
    for (int64_t j = 0; j < w.window[2]; ++j) {
      const Window::Range places = w.placesOf(2, j);
      element_(x + w.position(2, places.first, j), w.strides[2], y + places.first, places.end - places.first);
    }
  }

  void divideRow(T *y, int64_t rows) const {
    const Window &w = call_.window;
    for (int64_t c = 0; c < w.output[2]; ++c) {
      const Window::Range elements = w.elementsOf(2, c);
      y[c] /= T(rows * (elements.end - elements.first));
    }
  }

  PoolCall call_;
  bool mean_;
  decltype(&baseline::maxElement<T>) element_ = DS_BEST(maxElement<T>);
};

template <typename T> class MaxPoolGrad : public Kernel {
public:
  explicit MaxPoolGrad(const PoolCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *dy = static_cast<const T *>(operands[0]), *x = static_cast<const T *>(operands[1]);
    auto *dx = static_cast<T *>(operands[2]);
    const int64_t inputs = call_.window.inputs(), outputs = call_.window.outputs();
    parallelFor(context, call_.planes,
                [&](int64_t p, int) { scatter(dy + p * outputs, x + p * inputs, dx + p * inputs); });
    return Status::success();
  }

private:
  void scatter(const T *dy, const T *x, T *dx) const {
    std::fill_n(dx, call_.window.inputs(), T(0));
    forEachPlace(call_.window.output, [&](int64_t o, const Extents &place) {
      int64_t largest = -1;
      forEachElement(call_.window, place, [&](int64_t i) {
        if (largest < 0 || x[i] > x[largest] || (x[i] != x[i] && x[largest] == x[largest]))
          largest = i;
      });
      if (largest >= 0)
        dx[largest] += dy[o];
    });
  }

  PoolCall call_;
};

template <typename T> class AveragePoolGrad : public Kernel {
public:
  explicit AveragePoolGrad(const PoolCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *dy = static_cast<const T *>(operands[0]);
    auto *dx = static_cast<T *>(operands[1]);
    const int64_t inputs = call_.window.inputs(), outputs = call_.window.outputs();
    parallelFor(context, call_.planes, [&](int64_t p, int) { spread(dy + p * outputs, dx + p * inputs); });
    return Status::success();
  }

private:
  void spread(const T *dy, T *dx) const {
    const Window &w = call_.window;
    std::fill_n(dx, w.inputs(), T(0));
    forEachPlace(w.output, [&](int64_t o, const Extents &place) {
      int64_t count = 1;
      for (size_t d = 0; d < 3; ++d) {
        const Window::Range elements = w.elementsOf(d, place[d]);
        count *= elements.end - elements.first;
      }
      const T share = dy[o] / T(count);
      forEachElement(w, place, [&](int64_t i) { dx[i] += share; });
    });
  }

  PoolCall call_;
};

} // namespace

std::unique_ptr<Kernel> makePool(const Invocation &invocation, const BuildOptions &) {
  const PoolCall call(Call(invocation), "x", "y");
  return makeByFloat<Pool>(call.dtype, call, invocation.kernel == "average_pool");
}

std::unique_ptr<Kernel> makeMaxPoolGrad(const Invocation &invocation, const BuildOptions &) {
  const PoolCall call(Call(invocation), "dx", "dy");
  return makeByFloat<MaxPoolGrad>(call.dtype, call);
}

std::unique_ptr<Kernel> makeAveragePoolGrad(const Invocation &invocation, const BuildOptions &) {
  const PoolCall call(Call(invocation), "dx", "dy");
  return makeByFloat<AveragePoolGrad>(call.dtype, call);
}

} // namespace ds::kernels
