// attention and attention_grad: bfloat16 by cuDNN's fused attention, its backward by the deterministic variant;
// float32, float64 and what cuDNN refuses by our own kernels (plain_attention.h).
// torch.nn.functional.scaled_dot_product_attention.
#include "kernels/attention/attention_graph.h"
#include "kernels/attention/plain_attention.h"
#include "kernels/cuda/Fallback.h"
#include "kernels/cuda/Launch.h"
#include "kernels/cuda/SharedGraph.h"
#include "kernels/cuda/SumBytes.h"

namespace ds::kernels::cuda {

namespace {

/// Our own kernels are for float32 and float64; bfloat16 that is not empty is cuDNN's.
void noteFallback(const Invocation &invocation, const AttentionCall &call, bool hasGraph) {
  if (!hasGraph && call.dtype == DType::BF16 && call.batch * call.heads * call.queries * call.keys > 0)
    fallBack(invocation, "cuDNN");
}

/// cuDNN reads and writes at multiples of 16 bytes.
bool isAligned(std::span<void *const> operands) {
  for (void *operand : operands)
    if (reinterpret_cast<uintptr_t>(operand) % 16 != 0)
      return false;
  return true;
}

} // namespace

std::unique_ptr<Kernel> makeAttention(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  const AttentionCall call(checked);
  const CallWorkspace workspace = checked.workspace();
  const std::span<const TensorType> types(invocation.operands.data(), checked.operandCount());
  const auto graph = sharedGraph(invocation, [&] { return makeAttentionGraph(call, types, workspace.bytes); });
  noteFallback(invocation, call, graph != nullptr);
  return launching(invocation, [=](const CallContext &context, std::span<void *const> operands) -> Status {
    if (graph && isAligned(operands))
      return graph->enqueue(operands.first(workspace.operand), workspace.at(operands), streamOf(context));
    enqueuePlainAttention(call,
                          {operands[0], operands[1], operands[2], call.masked ? operands[3] : nullptr,
                           operands[call.next], operands[call.next + 1]},
                          streamOf(context));
    return Status::success();
  });
}

std::unique_ptr<Kernel> makeAttentionGrad(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  const AttentionCall call(checked);
  const CallWorkspace workspace = checked.workspace();
  const int64_t needed = call.batch * call.heads * call.queries * cudaSumBytes(call.dtype);
  checked.require(workspace.bytes >= needed,
                  "workspace must have " + std::to_string(needed) + " bytes, not " + std::to_string(workspace.bytes));
  const std::span<const TensorType> types(invocation.operands.data(), checked.operandCount());
  const auto graph = sharedGraph(invocation, [&] { return makeAttentionGradGraph(call, types, workspace.bytes); });
  noteFallback(invocation, call, graph != nullptr);
  return launching(invocation, [=](const CallContext &context, std::span<void *const> operands) -> Status {
    if (graph && isAligned(operands))
      return graph->enqueue(operands.first(workspace.operand), workspace.at(operands), streamOf(context));
    enqueuePlainAttentionGrad(call,
                              {operands[0], operands[1], operands[2], operands[3], call.masked ? operands[4] : nullptr,
                               operands[call.next], operands[call.next + 1], operands[call.next + 2],
                               operands[call.next + 3], operands[call.next + 4], workspace.at(operands)},
                              streamOf(context));
    return Status::success();
  });
}

} // namespace ds::kernels::cuda
