// elementwise: an interpreter of ElementwiseProgram (elementwise_run.h). A thread takes four elements of a float
// program through all steps, so that reading memory, not decoding, is what takes time; values that are needed later lie
// in local memory, which the first-level cache holds. Where the plan carries a kernel that was compiled for the call,
// that one runs instead (compiler/codegen/ElementwiseCode.h).
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/LoadedCode.h"
#include "kernels/cuda/Refuse.cuh"
#include "kernels/elementwise/elementwise_cuda_run.h"

namespace ds::kernels::cuda {

namespace {

using FewArguments = ElementwiseArguments<fewSteps, fewTensors>;
using ManyArguments = ElementwiseArguments<mostSteps, mostTensors>;
static_assert(sizeof(FewArguments) < 4096 - 64 && sizeof(ManyArguments) < 32764 - 64);

template <typename Thread, typename Arguments>
__global__ void __launch_bounds__(blockThreads)
    elementwiseKernel(const __grid_constant__ Arguments arguments, Refuser refuse) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x * Thread::width;
  int64_t first = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * Thread::width;
  for (; first < arguments.elements; first += stride) {
    Thread thread(arguments, first);
    thread.run();
    if constexpr (Thread::width == 1)
      if (thread.dividesByZero)
        refuse(first);
  }
}

Status divisionByZero(int64_t element) {
  return Status::failure("kernel 'elementwise': integer division by zero at element %lld",
                         static_cast<long long>(element));
}

template <typename Thread, typename Arguments>
std::unique_ptr<Kernel> makeWith(const Invocation &invocation, const ElementwisePlan &plan) {
  return launching(
      invocation,
      [plan, fixed = elementwiseArguments<Arguments>(plan)](const CallContext &context,
                                                            std::span<void *const> operands) {
        if (plan.elements == 0)
          return;
        Arguments arguments = fixed;
        setAddresses(arguments, plan, operands.data());
        const unsigned blocks = blocksFor(plan.elements, int64_t(blockThreads) * Thread::width);
        launch<elementwiseKernel<Thread, Arguments>>(blocks, blockThreads, streamOf(context), arguments,
                                                     Refuser(context));
      },
      divisionByZero);
}

template <template <typename, int> typename Thread>
std::unique_ptr<Kernel> makeSized(const Invocation &invocation, const ElementwisePlan &plan) {
  if (plan.small())
    return makeWith<Thread<FewArguments, fewSlots>, FewArguments>(invocation, plan);
  return makeWith<Thread<ManyArguments, mostSlots>, ManyArguments>(invocation, plan);
}

} // namespace

std::unique_ptr<Kernel> makeElementwise(const Invocation &invocation, const BuildOptions &) {
  const ElementwisePlan plan{Call(invocation)};
  if (std::shared_ptr<const LoadedCode> code = loadedCode(invocation))
    return launching(invocation, [code](const CallContext &context, std::span<void *const> operands) {
      code->launch(streamOf(context), operands);
    });
  return plan.allFloat ? makeSized<FloatElementwise>(invocation, plan) : makeSized<CellElementwise>(invocation, plan);
}

} // namespace ds::kernels::cuda
