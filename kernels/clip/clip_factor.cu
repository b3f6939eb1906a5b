// clip_factor: factor = 1 / max(1, (norm + 1e-6) / max_norm).
#include "kernels/clip/clip_factor_call.h"
#include "kernels/cuda/Launch.cuh"

namespace ds::kernels::cuda {

namespace {

__global__ void __launch_bounds__(1) clipFactorKernel(const double *norm, double *factor, double maxNorm) {
  *factor = clipFactorOf(*norm, maxNorm);
}

} // namespace

std::unique_ptr<Kernel> makeClipFactor(const Invocation &invocation, const BuildOptions &) {
  return launching(invocation, [call = ClipFactorCall(Call(invocation))](const CallContext &context,
                                                                         std::span<void *const> operands) {
    launch<clipFactorKernel>(1, 1, streamOf(context), at<const double>(operands, 0), at<double>(operands, 1),
                             call.maxNorm);
  });
}

} // namespace ds::kernels::cuda
