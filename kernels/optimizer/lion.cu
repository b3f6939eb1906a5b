// lion: one pass in one launch, DeepSpeed's FusedLion but that the sign of 0 is 0.
// Compiled with --fmad=false: operation by operation, as on a CPU; lr, step, clip and momentum are read from device
// memory.
#include "kernels/optimizer/lion_call.h"
#include "kernels/optimizer/update.cuh"

namespace ds::kernels::cuda {

namespace {

struct LionAttributes {
  double beta1, beta2, weightDecay;
};

template <typename T> struct LionUpdate {
  T factor, decay, rate, beta1, oneMinusBeta1, beta2, oneMinusBeta2;

  __device__ LionUpdate(const LionAttributes &n, double lr, int64_t step, T clip)
      : factor(clip), decay(T(1 - lr * n.weightDecay)), rate(T(lr)), beta1(T(n.beta1)), oneMinusBeta1(T(1 - n.beta1)),
        beta2(T(n.beta2)), oneMinusBeta2(T(1 - n.beta2)) {}

  __device__ void operator()(T &p, T g, T *m) const {
    const T gradient = g * factor, direction = *m * beta1 + oneMinusBeta1 * gradient;
    const T change = direction > 0 ? -rate : direction < 0 ? rate : T(0);
    p = p * decay + change;
    *m = *m * beta2 + oneMinusBeta2 * gradient;
  }
};

} // namespace

std::unique_ptr<Kernel> makeLion(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  const LionCall call(checked);
  return makeUpdate<LionUpdate>(invocation, checked, LionAttributes{call.beta1, call.beta2, call.weightDecay}, "lion",
                                call.cycled);
}

} // namespace ds::kernels::cuda
