// layer_norm_grad, by norm_grad.cuh.
#include "kernels/norm/layer_norm_call.h"
#include "kernels/norm/norm_grad.cuh"

namespace ds::kernels::cuda {

std::unique_ptr<Kernel> makeLayerNormGrad(const Invocation &invocation, const BuildOptions &) {
  return makeNormGrad<true>(invocation, LayerNormGradCall(Call(invocation), Device::Cuda));
}

} // namespace ds::kernels::cuda
