// cross_entropy_grad: dlogits = (softmax(logits) - one_hot(label)) * dloss / (labels that count); ignored rows are 0.
// One pass over the logits, in place if dlogits are their memory.
#include "kernels/loss/cross_entropy.cuh"

namespace ds::kernels::cuda {

std::unique_ptr<Kernel> makeCrossEntropyGrad(const Invocation &invocation, const BuildOptions &) {
  return makeLossKernel<false, true>("cross_entropy_grad", invocation,
                                     {.dloss = 3, .loss = LossOperands::none, .lses = 2, .dlogits = 4});
}

} // namespace ds::kernels::cuda
