// sgd: one pass in one launch, torch.optim.SGD's single-tensor formula.
// Compiled with --fmad=false: operation by operation, as on a CPU; lr, step and clip are read from device memory.
#include "kernels/optimizer/sgd_call.h"
#include "kernels/optimizer/update.cuh"

namespace ds::kernels::cuda {

namespace {

struct SgdNumbers {
  double momentum, weightDecay;
  bool nesterov;
};

template <typename T> struct SgdUpdate {
  T factor, decay, minusLr, momentum;
  bool first, nesterov;

  __device__ SgdUpdate(const SgdNumbers &n, double lr, int64_t step, T clip)
      : factor(clip), decay(T(n.weightDecay)), minusLr(T(-lr)), momentum(T(n.momentum)), first(step == 0),
        nesterov(n.nesterov) {}

  /// `buffer` is null without momentum.
  __device__ void operator()(T &p, T g, T *buffer) const {
    const T gradient = g * factor + decay * p;
    T change = gradient;
    if (buffer) {
      const T kept = first ? gradient : *buffer * momentum + gradient;
      *buffer = kept;
      change = nesterov ? gradient + momentum * kept : kept;
    }
    p = p + minusLr * change;
  }
};

} // namespace

std::unique_ptr<Kernel> makeSgd(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  const SgdCall call(checked);
  return makeUpdate<SgdUpdate>(invocation, checked, SgdNumbers{call.momentum, call.weightDecay, call.nesterov}, "sgd");
}

} // namespace ds::kernels::cuda
