// batch_norm_grad, per channel, with n = (x - mean) * rstd:
//   dx = gamma * rstd * (dy - mean(dy) - n * mean(dy * n)),  dgamma = sum of dy * n,  dbeta = sum of dy.
// One worker sums a channel, sample by sample.
#include "kernels/norm/batch_norm_call.h"

#define DS_LOOPS "kernels/norm/batch_norm_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

template <typename T> class BatchNormGrad : public Kernel {
public:
  explicit BatchNormGrad(const BatchNormCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    parallelFor(context, call_.channels, [&](int64_t channel, int) { differentiate(operands, channel); });
    return Status::success();
  }

private:
  void differentiate(std::span<void *const> operands, int64_t channel) const {
    const auto at = [&](size_t operand) { return static_cast<T *>(operands[operand]) + channel; };
    const int64_t first = call_.offset(0, channel), stride = call_.offset(1, 0);
    const T *dy = static_cast<const T *>(operands[0]) + first, *x = static_cast<const T *>(operands[1]) + first;
    const double count = double(call_.samples) * double(call_.places), rstd = double(*at(4));
    double sum, dot;
    sums_(dy, x, call_.samples, call_.places, stride, *at(3), sum, dot);
    *at(6) = T(dot * rstd);
    *at(7) = T(sum);
    grad_(dy, x, static_cast<T *>(operands[5]) + first, call_.samples, call_.places, stride, *at(3),
          T(rstd * double(*at(2))), T(sum / count), T(dot * rstd * rstd / count));
  }

  BatchNormCall call_;
  decltype(&baseline::channelGradSums<T>) sums_ = DS_BEST(channelGradSums<T>);
  decltype(&baseline::channelGrad<T>) grad_ = DS_BEST(channelGrad<T>);
};

} // namespace

std::unique_ptr<Kernel> makeBatchNormGrad(const Invocation &invocation, const BuildOptions &) {
  const BatchNormCall call{Call(invocation)};
  return makeByFloat<BatchNormGrad>(call.dtype, call);
}

} // namespace ds::kernels
