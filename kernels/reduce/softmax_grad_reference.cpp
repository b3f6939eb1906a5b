// softmax_grad: dx = y * (dy - sum(y * dy)); log_softmax_grad: dx = dy - exp(y) * sum(dy); sums in float64.
#include "kernels/reduce/softmax_call.h"

#include <cmath>

namespace ds::kernels {

namespace {

template <typename T> class SoftmaxGradReference : public Kernel {
public:
  explicit SoftmaxGradReference(const SoftmaxCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto [outer, length, inner] = call_.view;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t first = o * length * inner + i;
        column(static_cast<const T *>(operands[0]) + first, static_cast<const T *>(operands[1]) + first,
               static_cast<T *>(operands[2]) + first, length, inner);
      }
    return Status::success();
  }

private:
  void column(const T *y, const T *dy, T *dx, int64_t length, int64_t stride) const {
    double sum = 0;
    for (int64_t k = 0; k < length; ++k)
      sum += (call_.logarithm ? 1.0 : double(y[k * stride])) * dy[k * stride];
    for (int64_t k = 0; k < length; ++k) {
      const double yk = y[k * stride], dyk = dy[k * stride];
      dx[k * stride] = T(call_.logarithm ? dyk - std::exp(yk) * sum : yk * (dyk - sum));
    }
  }

  SoftmaxCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeSoftmaxGradReference(const Invocation &invocation, const BuildOptions &) {
  const SoftmaxCall call(Call(invocation), invocation.kernel);
  return makeByFloat<SoftmaxGradReference>(call.dtype, call);
}

} // namespace ds::kernels
