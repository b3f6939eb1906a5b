// cross_entropy_with_grad: cross_entropy and its gradient, with the bits of both. A block reads a row for the log of
// its sum and, while it is in the cache, again for the gradient, which may lie over it.
#include "kernels/loss/cross_entropy.cuh"

namespace ds::kernels::cuda {

std::unique_ptr<Kernel> makeCrossEntropyWithGrad(const Invocation &invocation, const BuildOptions &) {
  return makeLossKernel<true, true>("cross_entropy_with_grad", invocation,
                                    {.dloss = 2, .loss = 3, .lses = 4, .dlogits = 5});
}

} // namespace ds::kernels::cuda
