// cycled_momentum: one number of the schedule in cycled_momentum_call.h, by one thread.
#include "kernels/cuda/Refuse.cuh"
#include "kernels/cuda/StepRefusal.h"
#include "kernels/optimizer/cycled_momentum_call.h"

namespace ds::kernels::cuda {

namespace {

__global__ void cycledMomentumKernel(const int64_t *step, double *momentum, const CycledMomentumCall call,
                                     Refuser refuse) {
  if (*step < 0)
    refuse(*step);
  else
    *momentum = call.at(*step);
}

} // namespace

std::unique_ptr<Kernel> makeCycledMomentum(const Invocation &invocation, const BuildOptions &) {
  return launching(
      invocation,
      [call = CycledMomentumCall(Call(invocation))](const CallContext &context, std::span<void *const> operands) {
        cycledMomentumKernel<<<1, 1, 0, streamOf(context)>>>(at<const int64_t>(operands, 0), at<double>(operands, 1),
                                                             call, Refuser(context));
      },
      stepRefusal("cycled_momentum"));
}

} // namespace ds::kernels::cuda
