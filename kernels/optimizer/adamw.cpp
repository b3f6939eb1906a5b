// adamw: one fused pass over p, g, m, v (28 bytes an element in float32), torch.optim.AdamW's single-tensor formula in
// the tensors' type, or in float32 where they have 16 bits; what is one number for the whole update is computed in
// float64, as torch does.
#include "kernels/optimizer/adamw_call.h"
#include "kernels/optimizer/gradients.h"
#include "kernels/optimizer/state.h"

#include <algorithm>

namespace ds::kernels {

namespace {

/// The numbers of one update, in the tensors' type.
template <typename T> struct AdamWCoefficients {
  AdamWCoefficients(const AdamWCall &call, const AdamWScalars &scalars)
      : clip(T(scalars.clip)), decay(call.decoupled ? T(scalars.decay) : T(1)),
        coupledDecay(call.decoupled ? T(0) : T(call.weightDecay)), lerpWeight(T(1 - scalars.beta1)),
        lerpRest(T(1) - lerpWeight), beta2(T(call.beta2)), oneMinusBeta2(T(1 - call.beta2)),
        minusStepSize(T(-scalars.stepSize)), correction2(T(scalars.correction2)), epsilon(T(call.epsilon)),
        lerpFromStart(lerpWeight < T(0.5)) {}

  T clip, decay, coupledDecay, lerpWeight, lerpRest, beta2, oneMinusBeta2, minusStepSize, correction2, epsilon;
  bool lerpFromStart; ///< torch.lerp goes from the nearer end
};

} // namespace

} // namespace ds::kernels

#define DS_LOOPS "kernels/optimizer/adamw_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

constexpr int64_t grain = 65536; // a quarter of it takes 5 % longer (docs/offload.md)

template <typename T> class AdamW : public Kernel {
public:
  explicit AdamW(const AdamWCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    if (Status status = checkStep("adamw", *static_cast<const int64_t *>(operands[5])); !status.ok())
      return status;
    if (*static_cast<const double *>(operands[6]) == 0) // no update
      return Status::success();
    const AdamWScalars scalars(call_, *static_cast<const double *>(operands[4]),
                               *static_cast<const int64_t *>(operands[5]), *static_cast<const double *>(operands[6]),
                               beta1Of(call_, operands.back()));
    const AdamWCoefficients<T> coefficients(call_, scalars);
    parallelFor(context, piecesOf(call_.elements, grain), [&](int64_t piece, int) {
      const int64_t begin = piece * grain;
      withGradients<T>(operands[1], call_.gradient, begin, std::min(grain, call_.elements - begin),
                       [&](int64_t first, int64_t count, const T *g) {
                         const State<T> p(operands[0], call_.dtype, first, count);
                         const State<T> m(operands[2], call_.moments, first, count);
                         const State<T> v(operands[3], call_.moments, first, count);
                         run_(p.elements(), g, m.elements(), v.elements(), count, coefficients);
                       });
    });
    return Status::success();
  }

private:
  AdamWCall call_;
  decltype(&baseline::adamwRun<T>) run_ = DS_BEST(adamwRun<T>);
};

} // namespace

std::unique_ptr<Kernel> makeAdamW(const Invocation &invocation, const BuildOptions &) {
  const AdamWCall call{Call(invocation)};
  return makeByFloat<AdamW>(isNarrowFloat(call.dtype) ? DType::F32 : call.dtype, call);
}

} // namespace ds::kernels
