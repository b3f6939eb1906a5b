// transpose: dimension d of y is dimension perm[d] of x. numpy.transpose, torch.permute.
#include "kernels/movement/strided_copy.cuh"

namespace ds::kernels::cuda {

std::unique_ptr<Kernel> makeTranspose(const Invocation &invocation, const BuildOptions &) {
  return launching(invocation, [plan = transposePlan(TransposeCall(Call(invocation)))](
                                   const CallContext &context, std::span<void *const> operands) {
    enqueueCopy(plan, operands[0], operands[1], streamOf(context));
  });
}

} // namespace ds::kernels::cuda
