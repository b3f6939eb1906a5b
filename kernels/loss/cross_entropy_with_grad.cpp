// cross_entropy_with_grad: cross_entropy and cross_entropy_grad.
#include "kernels/loss/cross_entropy_with_grad.h"

namespace ds::kernels {

std::unique_ptr<Kernel> makeCrossEntropy(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeCrossEntropyGrad(const Invocation &, const BuildOptions &);

std::unique_ptr<Kernel> makeCrossEntropyWithGrad(const Invocation &invocation, const BuildOptions &options) {
  return std::make_unique<CrossEntropyWithGrad>(invocation, options, makeCrossEntropy, makeCrossEntropyGrad);
}

} // namespace ds::kernels
