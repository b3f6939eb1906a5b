// concat: the inputs side by side along one axis, a copy each. numpy.concatenate, torch.cat.
#include "kernels/movement/strided_copy.cuh"

#include <vector>

namespace ds::kernels::cuda {

std::unique_ptr<Kernel> makeConcat(const Invocation &invocation, const BuildOptions &) {
  const ConcatCall call{Call(invocation)};
  std::vector<CopyPlan> plans;
  for (size_t k = 0; k < call.inner.size(); ++k)
    plans.push_back(concatPlan(call, k));
  return launching(invocation, [plans](const CallContext &context, std::span<void *const> operands) {
    for (size_t k = 0; k < plans.size(); ++k)
      enqueueCopy(plans[k], operands[k], operands[plans.size()], streamOf(context));
  });
}

} // namespace ds::kernels::cuda
