// adagrad: one pass in one launch, torch.optim.Adagrad's single-tensor formula.
// Compiled with --fmad=false: operation by operation, as on a CPU; lr, step and clip are read from device memory.
#include "kernels/optimizer/adagrad_call.h"
#include "kernels/optimizer/update.cuh"

namespace ds::kernels::cuda {

namespace {

struct AdagradNumbers {
  double epsilon, weightDecay, lrDecay;
};

template <typename T> struct AdagradUpdate {
  T factor, decay, epsilon, minusRate;

  __device__ AdagradUpdate(const AdagradNumbers &n, double lr, int64_t step, T clip)
      : factor(clip), decay(T(n.weightDecay)), epsilon(T(n.epsilon)),
        minusRate(T(-(lr / (1 + double(step) * n.lrDecay)))) {}

  __device__ void operator()(T &p, T g, T *sum) const {
    const T gradient = g * factor + decay * p, squares = *sum + gradient * gradient;
    *sum = squares;
    p = p + minusRate * gradient / (std::sqrt(squares) + epsilon);
  }
};

} // namespace

std::unique_ptr<Kernel> makeAdagrad(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  const AdagradCall call(checked);
  return makeUpdate<AdagradUpdate>(invocation, checked, AdagradNumbers{call.epsilon, call.weightDecay, call.lrDecay},
                                   "adagrad");
}

} // namespace ds::kernels::cuda
