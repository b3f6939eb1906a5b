// linear_weight_grad: three loops and two, in float64.
#include "kernels/matmul/linear_weight_grad_call.h"

namespace ds::kernels {

namespace {

template <typename T> class LinearWeightGradReference final : public Kernel {
public:
  LinearWeightGradReference(const Call &checked, const LinearWeightGradCall &call)
      : call_(call), inputs_(checked.shape("x")[1]) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    using Parts = LinearWeightGradCall;
    const auto *dy = static_cast<const T *>(operands[Parts::dy]), *x = static_cast<const T *>(operands[Parts::x]);
    T *dw = static_cast<T *>(operands[Parts::dw]), *db = static_cast<T *>(operands[Parts::db]);
    for (int64_t n = 0; n < call_.columns; ++n) {
      double bias = 0;
      for (int64_t row = 0; row < call_.rows; ++row)
        bias += double(dy[row * call_.columns + n]);
      db[n] = T(bias);
      for (int64_t m = 0; m < inputs_; ++m) {
        double weight = 0;
        for (int64_t row = 0; row < call_.rows; ++row)
          weight += double(dy[row * call_.columns + n]) * double(x[row * inputs_ + m]);
        dw[call_.transposed ? n * inputs_ + m : m * call_.columns + n] = T(weight);
      }
    }
    return Status::success();
  }

private:
  LinearWeightGradCall call_;
  int64_t inputs_;
};

} // namespace

std::unique_ptr<Kernel> makeLinearWeightGradReference(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  return makeByFloat<LinearWeightGradReference>(checked.dtype(), checked, LinearWeightGradCall(checked));
}

} // namespace ds::kernels
