// cross_entropy: loss = sum or mean of lse[row] - logits[row, label[row]]. A block reads a row once (online_softmax.h).
// torch.nn.functional.cross_entropy.
#include "kernels/loss/cross_entropy.cuh"

namespace ds::kernels::cuda {

std::unique_ptr<Kernel> makeCrossEntropy(const Invocation &invocation, const BuildOptions &) {
  return makeLossKernel<true, false>(
      "cross_entropy", invocation, {.dloss = LossOperands::none, .loss = 2, .lses = 3, .dlogits = LossOperands::none});
}

} // namespace ds::kernels::cuda
