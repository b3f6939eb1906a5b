// learning_rate and cycled_momentum: one number of the schedules in learning_rate_call.h and cycled_momentum_call.h, by
// one thread.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Refuse.cuh"
#include "kernels/cuda/StepRefusal.h"
#include "kernels/optimizer/cycled_momentum_call.h"
#include "kernels/optimizer/learning_rate_call.h"

namespace ds::kernels::cuda {

namespace {

template <typename CallT>
__global__ void __launch_bounds__(1)
    scheduleKernel(const int64_t *step, double *result, const CallT call, Refuser refuse) {
  if (*step < 0)
    refuse(*step);
  else
    *result = call.at(*step);
}

template <typename CallT> std::unique_ptr<Kernel> makeScheduled(const Invocation &invocation, const char *name) {
  return launching(
      invocation,
      [call = CallT(Call(invocation))](const CallContext &context, std::span<void *const> operands) {
        launch<scheduleKernel<CallT>>(1, 1, streamOf(context), at<const int64_t>(operands, 0), at<double>(operands, 1),
                                      call, Refuser(context));
      },
      stepRefusal(name));
}

} // namespace

std::unique_ptr<Kernel> makeLearningRate(const Invocation &invocation, const BuildOptions &) {
  return makeScheduled<LearningRateCall>(invocation, "learning_rate");
}
std::unique_ptr<Kernel> makeCycledMomentum(const Invocation &invocation, const BuildOptions &) {
  return makeScheduled<CycledMomentumCall>(invocation, "cycled_momentum");
}

} // namespace ds::kernels::cuda
