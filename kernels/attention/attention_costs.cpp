#include "kernels/KernelTable.h"
#include "kernels/attention/attention_call.h"
#include "kernels/cpu/Scratch.h"
#include "kernels/cpu/TileBlocks.h"
#include "kernels/cuda/SumBytes.h"

#include <algorithm>

namespace ds::kernels {

/// What a worker packs for tile registers: of products of a tile of scores, over the depth or the columns of v.
int64_t attentionWorkspace(const CallTypes &call, const WorkspaceLimits &limits) {
  if (call["q"].dtype != DType::F32)
    return 0;
  const int64_t rows = std::min(call.dim("q", 2), attentionTile), cols = std::min(call.dim("k", 2), attentionTile);
  const int64_t depth = call.dim("q", 3), columns = call.dim("v", 3), side = std::max(rows, cols);
  const int64_t bytes = std::max({tileScratchBytes(rows, cols, std::max(depth, columns)),
                                  tileScratchBytes(side, depth, side), tileScratchBytes(side, columns, side)});
  return WorkerScratch::bytesFor(std::min(bytes, limits.bytesPerWorker), limits.workers);
}

/// cuDNN's, which runs bfloat16.
int64_t cudaAttentionWorkspace(const CallTypes &call, const WorkspaceLimits &limits) {
  return isWideFloat(call["q"].dtype) ? 0 : std::min<int64_t>(limits.bytesPerWorker, 1 << 20);
}

/// What cuDNN below 9.25 takes on Hopper to add in a fixed order; its guide to scaled dot product attention. Nothing
/// where it would be too much: then our own kernel runs.
static int64_t orderedSumsBytes(int64_t heads, int64_t queries, int64_t keys) {
  const auto padded = [](int64_t length) { return (length + 63) / 64 * 64; };
  const int64_t bytes = 2 * heads * padded(queries) * padded(keys) + 4 * heads * queries;
  return bytes <= int64_t(4) << 30 ? bytes : 0;
}

/// A number per query; where cuDNN runs it, also sums of dq in float32 and, if heads share k and v, dk and dv of every
/// head.
int64_t cudaAttentionGradWorkspace(const CallTypes &call, const WorkspaceLimits &) {
  const DType dtype = call["q"].dtype;
  const int64_t heads = call.dim("q", 0) * call.dim("q", 1), queries = call.dim("q", 2), depth = call.dim("q", 3);
  if (isWideFloat(dtype))
    return heads * queries * cudaSumBytes(dtype);
  const int64_t padded = heads * ((queries + 127) / 128 * 128);
  const bool shared = call.dim("k", 1) != call.dim("q", 1);
  const int64_t everyHead = shared ? heads * call.dim("k", 2) * (call.dim("k", 3) + call.dim("v", 3)) : 0;
  return 4 * padded * (depth + 2) + 2 * everyHead + orderedSumsBytes(heads, queries, call.dim("k", 2)) + (1 << 20);
}

/// Queries by keys for each head.
static double scoresOf(const CallTypes &call) {
  return double(call.dim("q", 0)) * double(call.dim("q", 1)) * double(call.dim("q", 2)) * double(call.dim("k", 2));
}

/// Scores over the depth, and their product with v. That a causal mask leaves some out does not count.
double attentionFlops(const CallTypes &call) {
  return 2 * scoresOf(call) * double(call.dim("q", 3) + call.dim("v", 3));
}

/// The scores again, dq and dk over the depth; the gradient of the scores and dv over the columns.
double attentionGradFlops(const CallTypes &call) {
  return 2 * scoresOf(call) * double(3 * call.dim("q", 3) + 2 * call.dim("v", 3));
}

} // namespace ds::kernels
