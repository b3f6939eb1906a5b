//===- attention_graph.h - attention by cuDNN ----------------------------===//
#pragma once

#include "kernels/attention/attention_call.h"
#include "kernels/attention/attention_chunks.h"
#include "kernels/cuda/CudnnGraph.h"

#include <memory>

namespace ds::kernels::cuda {

/// q, k, v, [mask], out, lse; null where cuDNN does not support the call. 16 bits alone.
std::unique_ptr<CudnnGraph> makeAttentionGraph(const AttentionCall &call, int64_t workspaceBytes);
/// dout, q, k, v, [mask], out, lse, dq, dk, dv; so many heads at once.
std::unique_ptr<CudnnGraph> makeAttentionGradGraph(const AttentionCall &call, const HeadChunk &chunk,
                                                   int64_t workspaceBytes);

} // namespace ds::kernels::cuda
