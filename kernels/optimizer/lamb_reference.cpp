// lamb: one element at a time in float64, as in You et al., "Large batch optimization for deep learning: training BERT
// in 76 minutes", with DeepSpeed's bounds of the trust ratio.
#include "kernels/optimizer/lamb_call.h"

#include <algorithm>
#include <cmath>

namespace ds::kernels {

namespace {

template <typename T> class LambReference : public Kernel {
public:
  explicit LambReference(const LambCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const int64_t step = *static_cast<const int64_t *>(operands[5]);
    if (Status status = checkStep("lamb", step); !status.ok())
      return status;
    if (*static_cast<const double *>(operands[6]) == 0) // no update
      return Status::success();
    auto *p = static_cast<T *>(operands[0]), *m = static_cast<T *>(operands[2]), *v = static_cast<T *>(operands[3]);
    const auto *gradient = static_cast<const T *>(operands[1]);
    const double lr = *static_cast<const double *>(operands[4]), clip = *static_cast<const double *>(operands[6]);
    const double beta1 = beta1Of(call_, operands.back()), beta2 = call_.beta2;
    double parameterSquares = 0, updateSquares = 0;
    for (int64_t i = 0; i < call_.elements; ++i) {
      const double g = gradient[i] * clip;
      m[i] = T(beta1 * m[i] + (1 - beta1) * g);
      v[i] = T(beta2 * v[i] + (1 - beta2) * g * g);
      parameterSquares += double(p[i]) * p[i];
      updateSquares += updateAt(p, m, v, i) * updateAt(p, m, v, i);
    }
    double size = lr;
    if (call_.biasCorrection)
      size *= std::sqrt(1 - std::pow(beta2, step + 1)) / (1 - std::pow(beta1, step + 1));
    if (parameterSquares > 0 && updateSquares > 0)
      size *= std::clamp(std::sqrt(parameterSquares / updateSquares), call_.minCoeff, call_.maxCoeff);
    for (int64_t i = 0; i < call_.elements; ++i)
      p[i] = T(p[i] - size * updateAt(p, m, v, i));
    return Status::success();
  }

private:
  double updateAt(const T *p, const T *m, const T *v, int64_t i) const {
    return m[i] / (std::sqrt(double(v[i])) + call_.epsilon) + call_.weightDecay * p[i];
  }

  LambCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeLambReference(const Invocation &invocation, const BuildOptions &) {
  const LambCall call{Call(invocation)};
  return makeByFloat<LambReference>(call.dtype, call);
}

} // namespace ds::kernels
