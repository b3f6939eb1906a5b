// learning_rate: one number of the schedules in learning_rate_call.h, by one thread.
#include "kernels/cuda/Refuse.cuh"
#include "kernels/cuda/StepRefusal.h"
#include "kernels/optimizer/learning_rate_call.h"

namespace ds::kernels::cuda {

namespace {

__global__ void learningRateKernel(const int64_t *step, double *lr, const LearningRateCall call, Refuser refuse) {
  if (*step < 0)
    refuse(*step);
  else
    *lr = learningRateOf(call, *step);
}

} // namespace

std::unique_ptr<Kernel> makeLearningRate(const Invocation &invocation, const BuildOptions &) {
  return launching(
      invocation,
      [call = LearningRateCall(Call(invocation))](const CallContext &context, std::span<void *const> operands) {
        learningRateKernel<<<1, 1, 0, streamOf(context)>>>(at<const int64_t>(operands, 0), at<double>(operands, 1),
                                                           call, Refuser(context));
      },
      stepRefusal("learning_rate"));
}

} // namespace ds::kernels::cuda
