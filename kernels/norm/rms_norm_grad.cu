// rms_norm_grad, by norm_grad.cuh.
#include "kernels/norm/norm_grad.cuh"
#include "kernels/norm/rms_norm_call.h"

namespace ds::kernels::cuda {

std::unique_ptr<Kernel> makeRmsNormGrad(const Invocation &invocation, const BuildOptions &) {
  return makeNormGrad<false>(invocation, RmsNormGradCall(Call(invocation), Device::Cuda));
}

} // namespace ds::kernels::cuda
