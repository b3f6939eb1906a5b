// conv, conv_input_grad and conv_weight_grad by cuDNN, deterministic engines within the workspace of the plan; float64
// and what cuDNN refuses by our own kernels (plain_conv.h). torch.nn.functional.conv1d to conv3d.
#include "kernels/conv/conv_graph.h"
#include "kernels/conv/plain_conv.h"
#include "kernels/cuda/Fallback.h"
#include "kernels/cuda/Launch.h"
#include "kernels/cuda/SharedGraph.h"

#include <array>
#include <optional>

namespace ds::kernels::cuda {

namespace {

/// The first two operands are read. `result`: the operand that is written; `bias`: an operand, 0 without one.
std::unique_ptr<Kernel> makeConvolution(const Invocation &invocation, ConvKind kind, const ConvCall &call,
                                        size_t result, size_t bias) {
  const DType weightType = invocation.operands[kind == ConvKind::WeightGrad ? result : 1].dtype;
  const ConvPlan plan(kind, call, weightType);
  const auto graph = sharedGraph(invocation, [&] { return makeConvGraph(plan, call.workspace.bytes); });
  if (!graph && !plan.empty && call.dtype != DType::F64)
    fallBack(invocation, "cuDNN");
  return launching(invocation, [=](const CallContext &context, std::span<void *const> operands) -> Status {
    const cudaStream_t stream = streamOf(context);
    const std::array<void *, 3> addresses = {operands[0], operands[1], operands[result]};
    if (graph) {
      if (Status status = graph->enqueue(addresses, call.workspace.at(operands), stream); !status.ok())
        return status;
    } else {
      enqueuePlainConv(kind, call, weightType, addresses[0], addresses[1], addresses[2], stream);
    }
    if (bias)
      enqueueConvBias(call, operands[bias], operands[result], stream);
    return Status::success();
  });
}

} // namespace

std::unique_ptr<Kernel> makeConv(const Invocation &invocation, const BuildOptions &) {
  const ConvForwardCall call{Call(invocation)};
  return makeConvolution(invocation, ConvKind::Forward, call, call.y, call.bias ? 2 : 0);
}

std::unique_ptr<Kernel> makeConvInputGrad(const Invocation &invocation, const BuildOptions &) {
  return makeConvolution(invocation, ConvKind::InputGrad, ConvInputGradCall(Call(invocation)), 2, 0);
}

std::unique_ptr<Kernel> makeConvWeightGrad(const Invocation &invocation, const BuildOptions &) {
  return makeConvolution(invocation, ConvKind::WeightGrad, ConvWeightGradCall(Call(invocation)), 2, 0);
}

} // namespace ds::kernels::cuda
