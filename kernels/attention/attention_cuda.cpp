// attention and attention_grad, packed or not: 16 bits by cuDNN's fused attention, its backward by the deterministic
// variant; float32, float64 and what cuDNN refuses by our own kernels (plain_attention.h).
// torch.nn.functional.scaled_dot_product_attention.
#include "kernels/attention/attention_graph.h"
#include "kernels/attention/plain_attention.h"
#include "kernels/cuda/Fallback.h"
#include "kernels/cuda/Launch.h"
#include "kernels/cuda/SharedGraph.h"
#include "kernels/cuda/SumBytes.h"

namespace ds::kernels::cuda {

namespace {

/// Our own kernels are for float32 and float64; a call of 16 bits that is not empty is cuDNN's.
void noteFallback(const Invocation &invocation, const AttentionCall &call, bool hasGraph) {
  if (!hasGraph && isNarrowFloat(call.dtype) && call.batch * call.heads * call.queries * call.keys > 0)
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
  const auto graph = sharedGraph(invocation, [&] { return makeAttentionGraph(call, workspace.bytes); });
  noteFallback(invocation, call, graph != nullptr);
  return launching(invocation, [=](const CallContext &context, std::span<void *const> operands) -> Status {
    const AttentionOperands apart = call.apart(operands);
    if (graph && isAligned(operands) && isAligned(apart.all()))
      return graph->enqueue(apart.all(), workspace.at(operands), streamOf(context));
    enqueuePlainAttention(
        call, {apart[0], apart[1], apart[2], call.masked ? apart[3] : nullptr, apart[call.next], apart[call.next + 1]},
        streamOf(context));
    return Status::success();
  });
}

std::unique_ptr<Kernel> makePackedAttention(const Invocation &invocation, const BuildOptions &options) {
  return makeAttention(invocation, options);
}

std::unique_ptr<Kernel> makeAttentionGrad(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  const AttentionCall call(checked);
  const CallWorkspace workspace = checked.workspace();
  const int64_t needed = 2 * call.batch * call.heads * call.queries * cudaSumBytes(call.dtype);
  checked.require(workspace.bytes >= needed,
                  "workspace must have " + std::to_string(needed) + " bytes, not " + std::to_string(workspace.bytes));
  const auto graph = sharedGraph(invocation, [&] {
    const HeadChunk chunk = headChunk(call.batch, call.groups, call.heads / call.groups, call.queries, call.keys);
    return makeAttentionGradGraph(call, chunk, workspace.bytes);
  });
  noteFallback(invocation, call, graph != nullptr);
  return launching(invocation, [=](const CallContext &context, std::span<void *const> operands) -> Status {
    const AttentionOperands apart = call.apart(operands);
    if (graph && isAligned(operands) && isAligned(apart.all()))
      return graph->enqueue(apart.all(), workspace.at(operands), streamOf(context));
    enqueuePlainAttentionGrad(call,
                              {apart[0], apart[1], apart[2], apart[3], call.masked ? apart[4] : nullptr,
                               apart[call.next], apart[call.next + 1], apart[call.next + 2], apart[call.next + 3],
                               apart[call.next + 4], workspace.at(operands)},
                              streamOf(context));
    return Status::success();
  });
}

std::unique_ptr<Kernel> makePackedAttentionGrad(const Invocation &invocation, const BuildOptions &options) {
  return makeAttentionGrad(invocation, options);
}

} // namespace ds::kernels::cuda
