// slice: y[i] = x[starts + i * steps].
#include "kernels/movement/strided_copy.cuh"

namespace ds::kernels::cuda {

std::unique_ptr<Kernel> makeSlice(const Invocation &invocation, const BuildOptions &) {
  return launching(invocation, [plan = slicePlan(SliceCall(Call(invocation)))](const CallContext &context,
                                                                               std::span<void *const> operands) {
    enqueueCopy(plan, operands[0], operands[1], streamOf(context));
  });
}

} // namespace ds::kernels::cuda
