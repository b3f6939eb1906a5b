// linear_weight_grad by the kernels of its parts. oneDNN's products have no epilogue that sums an operand.
#include "kernels/matmul/linear_weight_grad_parts.h"

namespace ds::kernels {

std::unique_ptr<Kernel> makeMatmul(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeReduce(const Invocation &, const BuildOptions &);

std::unique_ptr<Kernel> makeLinearWeightGrad(const Invocation &invocation, const BuildOptions &options) {
  return std::make_unique<LinearWeightGradParts>(LinearWeightGradCall{Call(invocation)}, makeMatmul, makeReduce,
                                                 options);
}

} // namespace ds::kernels
