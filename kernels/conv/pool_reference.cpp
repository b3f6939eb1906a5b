// max_pool, average_pool and their gradients, window by window, in float64.
#include "kernels/conv/pool_call.h"

#include <limits>

namespace ds::kernels {

namespace {

/// The index in a plane of the first largest element (the first NaN, if there is one) of a window; -1 if it is empty.
template <typename T> int64_t firstLargest(const Window &window, const Extents &place, const T *x) {
  int64_t largest = -1;
  forEachElement(window, place, [&](int64_t i) {
    if (largest < 0 || x[i] > x[largest] || (x[i] != x[i] && x[largest] == x[largest]))
      largest = i;
  });
  return largest;
}

int64_t countOf(const Window &window, const Extents &place) {
  int64_t count = 0;
  forEachElement(window, place, [&](int64_t) { ++count; });
  return count;
}

template <typename T> class PoolReference : public Kernel {
public:
  PoolReference(const PoolCall &call, bool mean) : call_(call), mean_(mean) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const Window &w = call_.window;
    for (int64_t p = 0; p < call_.planes; ++p) {
      const T *x = static_cast<const T *>(operands[0]) + p * w.inputs();
      T *y = static_cast<T *>(operands[1]) + p * w.outputs();
      forEachPlace(w.output,
                   [&](int64_t o, const Extents &place) { y[o] = mean_ ? mean(x, place) : largest(x, place); });
    }
    return Status::success();
  }

private:
  T largest(const T *x, const Extents &place) const {
    const int64_t i = firstLargest(call_.window, place, x);
    return i < 0 ? -std::numeric_limits<T>::infinity() : x[i];
  }
  T mean(const T *x, const Extents &place) const {
    double sum = 0;
    forEachElement(call_.window, place, [&](int64_t i) { sum += x[i]; });
    return T(sum / double(countOf(call_.window, place)));
  }

  PoolCall call_;
  bool mean_;
};

/// dy, x, dx of the maximum; dy, dx of the mean.
template <typename T> class PoolGradReference : public Kernel {
public:
  PoolGradReference(const PoolCall &call, bool mean) : call_(call), mean_(mean) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const Window &w = call_.window;
    for (int64_t p = 0; p < call_.planes; ++p) {
      const T *dy = static_cast<const T *>(operands[0]) + p * w.outputs();
      T *dx = static_cast<T *>(operands[mean_ ? 1 : 2]) + p * w.inputs();
      std::fill_n(dx, w.inputs(), T(0));
      forEachPlace(w.output, [&](int64_t o, const Extents &place) {
        if (mean_) {
          const double share = double(dy[o]) / double(countOf(w, place));
          forEachElement(w, place, [&](int64_t i) { dx[i] = T(dx[i] + share); });
        } else if (const int64_t i = firstLargest(w, place, static_cast<const T *>(operands[1]) + p * w.inputs());
                   i >= 0) {
          dx[i] += dy[o];
        }
      });
    }
    return Status::success();
  }

private:
  PoolCall call_;
  bool mean_;
};

} // namespace

std::unique_ptr<Kernel> makePoolReference(const Invocation &invocation, const BuildOptions &) {
  const PoolCall call(Call(invocation), "x", "y");
  return makeByFloat<PoolReference>(call.dtype, call, invocation.kernel == "average_pool");
}

std::unique_ptr<Kernel> makeMaxPoolGradReference(const Invocation &invocation, const BuildOptions &) {
  const PoolCall call(Call(invocation), "dx", "dy");
  return makeByFloat<PoolGradReference>(call.dtype, call, false);
}

std::unique_ptr<Kernel> makeAveragePoolGradReference(const Invocation &invocation, const BuildOptions &) {
  const PoolCall call(Call(invocation), "dx", "dy");
  return makeByFloat<PoolGradReference>(call.dtype, call, true);
}

} // namespace ds::kernels
