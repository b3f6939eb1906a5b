// increment: step += 1, by one thread.
#include "kernels/Call.h"
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Refuse.cuh"

namespace ds::kernels::cuda {

namespace {

__global__ void __launch_bounds__(1) incrementKernel(int64_t *step, Refuser refuse) {
  if (*step == INT64_MAX)
    refuse(*step);
  else
    ++*step;
}

} // namespace

std::unique_ptr<Kernel> makeIncrement(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  return launching(
      invocation,
      [](const CallContext &context, std::span<void *const> operands) {
        launch<incrementKernel>(1, 1, streamOf(context), at<int64_t>(operands, 0), Refuser(context));
      },
      [](int64_t step) {
        return Status::failure("kernel 'increment': step %lld is the largest int64", static_cast<long long>(step));
      });
}

} // namespace ds::kernels::cuda
