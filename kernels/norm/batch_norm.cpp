// batch_norm, per channel of x [samples, channels, places]:  y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
// Writes y, mean, variance (biased) and rstd [channels]. One worker sums a channel, sample by sample, in lanes of a
// fixed number: the bits do not depend on the number of workers. Ioffe and Szegedy 2015;
// torch.nn.functional.batch_norm.
#include "kernels/norm/batch_norm_call.h"

#define DS_LOOPS "kernels/norm/batch_norm_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

template <typename T> class BatchNorm : public Kernel {
public:
  explicit BatchNorm(const BatchNormCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    parallelFor(context, call_.channels, [&](int64_t channel, int) { normalize(operands, channel); });
    return Status::success();
  }

private:
  void normalize(std::span<void *const> operands, int64_t channel) const {
    const auto at = [&](size_t operand) { return static_cast<T *>(operands[operand]) + channel; };
    const T *x = static_cast<const T *>(operands[0]) + call_.offset(0, channel);
    T *y = static_cast<T *>(operands[3]) + call_.offset(0, channel);
    const int64_t stride = call_.offset(1, 0);
    T *mean = at(4), *rstd = at(6);
    statistics_(x, call_.samples, call_.places, stride, call_.epsilon, mean, at(5), rstd);
    scale_(x, y, call_.samples, call_.places, stride, *mean, *rstd * *at(1), *at(2));
  }

  BatchNormCall call_;
  decltype(&baseline::channelStatistics<T>) statistics_ = DS_BEST(channelStatistics<T>);
  decltype(&baseline::scaleChannel<T>) scale_ = DS_BEST(scaleChannel<T>);
};

} // namespace

std::unique_ptr<Kernel> makeBatchNorm(const Invocation &invocation, const BuildOptions &) {
  const BatchNormCall call{Call(invocation)};
  return makeByFloat<BatchNorm>(call.dtype, call);
}

} // namespace ds::kernels
