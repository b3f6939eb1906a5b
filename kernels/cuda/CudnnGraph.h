//===- CudnnGraph.h - an operation that cuDNN runs ------------------------===//
//
// Made when the kernel is made: cuDNN's heuristics choose a deterministic engine within the workspace of the plan, and
// it is kept. What cuDNN does not support gives no graph, and the kernel falls back to one of ours.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/attention/attention_call.h"
#include "kernels/conv/conv_cuda_plan.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <span>

namespace ds::kernels::cuda {

class CudnnGraph {
public:
  virtual ~CudnnGraph() = default;
  /// `addresses` of the operation's tensors in the order of its maker; the workspace is the plan's.
  virtual Status enqueue(std::span<void *const> addresses, void *workspace, cudaStream_t stream) noexcept = 0;
};

/// q, k, v, [mask], out, lse; null where cuDNN does not support the call. bfloat16 alone.
std::unique_ptr<CudnnGraph> makeAttentionGraph(const AttentionCall &call, std::span<const TensorType> operands,
                                               int64_t workspaceBytes);
/// dout, q, k, v, [mask], out, lse, dq, dk, dv.
std::unique_ptr<CudnnGraph> makeAttentionGradGraph(const AttentionCall &call, std::span<const TensorType> operands,
                                                   int64_t workspaceBytes);
/// x, w, y; or dy, w, dx; or dy, x, dw: by the plan.
std::unique_ptr<CudnnGraph> makeConvGraph(const ConvPlan &plan, int64_t workspaceBytes);

} // namespace ds::kernels::cuda
