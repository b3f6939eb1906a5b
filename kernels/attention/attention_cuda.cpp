// attention and attention_grad: bfloat16 by cuDNN's fused attention, its backward by the deterministic variant;
// float32, float64 and what cuDNN refuses by our own kernels (PlainAttention.h).
// torch.nn.functional.scaled_dot_product_attention.
#include "kernels/attention/attention_graph.h"
#include "kernels/attention/plain_attention.h"
#include "kernels/cuda/BFloat16Call.h"
#include "kernels/cuda/CudnnGraph.h"
#include "kernels/cuda/Factories.h"
#include "kernels/cuda/Launch.h"
#include "kernels/cuda/Workspace.h"

namespace ds::kernels::cuda {

namespace {

/// cuDNN reads and writes at multiples of 16 bytes.
bool isAligned(std::span<void *const> operands) {
  for (void *operand : operands)
    if (reinterpret_cast<uintptr_t>(operand) % 16 != 0)
      return false;
  return true;
}

} // namespace

std::unique_ptr<Kernel> makeAttention(const Invocation &whole, const BuildOptions &) {
  const WithWorkspace parts(whole);
  const AttentionCall call = withOwnType(attentionCall(Call(parts.wide)), parts.invocation);
  std::shared_ptr<CudnnGraph> graph = makeAttentionGraph(call, parts.invocation.operands, parts.bytes);
  return launching(whole, [call, graph](const CallContext &context, std::span<void *const> operands) -> Status {
    if (graph && isAligned(operands))
      return graph->enqueue(operands.first(operands.size() - 1), operands.back(), streamOf(context));
    enqueuePlainAttention(call,
                          {operands[0], operands[1], operands[2], call.masked ? operands[3] : nullptr,
                           operands[call.next], operands[call.next + 1]},
                          streamOf(context));
    return Status::success();
  });
}

std::unique_ptr<Kernel> makeAttentionGrad(const Invocation &whole, const BuildOptions &) {
  const WithWorkspace parts(whole);
  const AttentionCall call = withOwnType(attentionGradCall(Call(parts.wide)), parts.invocation);
  parts.require(call.batch * call.heads * call.queries * cudaSumBytes(call.dtype));
  std::shared_ptr<CudnnGraph> graph = makeAttentionGradGraph(call, parts.invocation.operands, parts.bytes);
  return launching(whole, [call, graph](const CallContext &context, std::span<void *const> operands) -> Status {
    if (graph && isAligned(operands))
      return graph->enqueue(operands.first(operands.size() - 1), operands.back(), streamOf(context));
    enqueuePlainAttentionGrad(call,
                              {operands[0], operands[1], operands[2], operands[3], call.masked ? operands[4] : nullptr,
                               operands[call.next], operands[call.next + 1], operands[call.next + 2],
                               operands[call.next + 3], operands[call.next + 4], operands.back()},
                              streamOf(context));
    return Status::success();
  });
}

} // namespace ds::kernels::cuda
