// cross_entropy_with_grad: cross_entropy and cross_entropy_grad.
#include "kernels/loss/cross_entropy_with_grad.h"

namespace ds::kernels {

std::unique_ptr<Kernel> makeCrossEntropyReference(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeCrossEntropyGradReference(const Invocation &, const BuildOptions &);

std::unique_ptr<Kernel> makeCrossEntropyWithGradReference(const Invocation &invocation, const BuildOptions &options) {
  return std::make_unique<CrossEntropyWithGrad>(invocation, options, makeCrossEntropyReference,
                                                makeCrossEntropyGradReference);
}

} // namespace ds::kernels
