// softmax and log_softmax along one axis, in float64.
#include "kernels/reduce/softmax_call.h"

#include <cmath>
#include <limits>

namespace ds::kernels {

namespace {

template <typename T> class SoftmaxReference : public Kernel {
public:
  explicit SoftmaxReference(const SoftmaxCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto [outer, length, inner] = call_.view;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t first = o * length * inner + i;
        column(static_cast<const T *>(operands[0]) + first, static_cast<T *>(operands[1]) + first, length, inner);
      }
    return Status::success();
  }

private:
  void column(const T *x, T *y, int64_t length, int64_t stride) const {
    double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k = 0; k < length; ++k)
      if (!(x[k * stride] <= maximum))
        maximum = x[k * stride];
    for (int64_t k = 0; k < length; ++k)
      sum += std::exp(x[k * stride] - maximum);
    for (int64_t k = 0; k < length; ++k) {
      const double shifted = x[k * stride] - maximum;
      y[k * stride] = T(call_.logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum);
    }
  }

  SoftmaxCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeSoftmaxReference(const Invocation &invocation, const BuildOptions &) {
  const SoftmaxCall call(Call(invocation), invocation.kernel);
  return makeByFloat<SoftmaxReference>(call.dtype, call);
}

} // namespace ds::kernels
