#include "kernels/CallWork.h"
#include "kernels/KernelTable.h"
#include "kernels/attention/attention_call.h"
#include "kernels/attention/attention_chunks.h"
#include "kernels/cpu/Scratch.h"
#include "kernels/cpu/TileBlocks.h"
#include "kernels/cuda/SumBytes.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace ds::kernels {

namespace {

/// The sizes of a call. lse is [batch, heads, queries] in every layout.
struct Sizes {
  explicit Sizes(const CallTypes &call)
      : heads(call.dim("lse", 1)), queries(call.dim("lse", 2)), causal(call.isCausal()) {
    if (call["qkv"].shape.size() == 4)
      readPacked(call);
    else
      readApart(call);
    heads *= call.dim("lse", 0);
    groups *= call.dim("lse", 0);
  }

  DType dtype = DType::F32;
  int64_t heads, groups = 0; // of all batches
  int64_t queries, keys = 0, depth = 0, columns = 0;
  bool causal;

  /// Of all heads. A causal mask leaves query i the keys 0 to i; what else a mask hides is computed all the same.
  double scores() const {
    const double side = double(std::min(queries, keys)); // of the triangle; queries below it see all keys
    const double ofHead = causal ? side * (side + 1) / 2 + double(queries - int64_t(side)) * double(keys)
                                 : double(queries) * double(keys);
    return double(heads) * ofHead;
  }

private:
  void readPacked(const CallTypes &call) {
    dtype = call["qkv"].dtype;
    groups = (call.dim("qkv", 2) - heads) / 2, keys = queries;
    depth = columns = call.dim("qkv", 3);
  }

  /// lse says which layout q has; where heads and queries are equal many, keys are taken to be more than groups.
  void readApart(const CallTypes &call) {
    dtype = call["q"].dtype;
    depth = call.dim("q", 3), columns = call.dim("v", 3);
    const int64_t second = call.dim("k", 1), third = call.dim("k", 2);
    if (heads == queries) {
      groups = std::min(second, third), keys = std::max(second, third);
    } else {
      const bool bshd = call.dim("q", 2) == heads;
      groups = bshd ? third : second, keys = bshd ? second : third;
    }
  }
};

} // namespace

/// What a worker packs for tile registers: of products of a tile of scores, over the depth or the columns of v.
int64_t attentionWorkspace(const CallTypes &call, const WorkspaceLimits &limits) {
  const Sizes sizes(call);
  if (sizes.dtype != DType::F32)
    return 0;
  const int64_t rows = std::min(sizes.queries, attentionTile), cols = std::min(sizes.keys, attentionTile);
  const int64_t depth = sizes.depth, columns = sizes.columns, side = std::max(rows, cols);
  const int64_t bytes = std::max({tileScratchBytes(rows, cols, std::max(depth, columns)),
                                  tileScratchBytes(side, depth, side), tileScratchBytes(side, columns, side)});
  return WorkerScratch::bytesFor(std::min(bytes, limits.bytesPerWorker), limits.workers);
}

/// cuDNN's, which runs 16 bits.
int64_t cudaAttentionWorkspace(const CallTypes &call, const WorkspaceLimits &limits) {
  return isWideFloat(Sizes(call).dtype) ? 0 : std::min<int64_t>(limits.bytesPerWorker, 1 << 20);
}

/// The heads that cuDNN takes at once of a gradient.
static HeadChunk chunkOf(const CallTypes &call, const Sizes &sizes) {
  const int64_t batches = call.dim("lse", 0);
  return headChunk(batches, sizes.groups / batches, sizes.heads / sizes.groups, sizes.queries, sizes.keys);
}

/// Elements of a mask from batch to batch and from head to head, 0 where it is broadcast; empty without a mask.
static std::vector<int64_t> maskStridesOf(const CallTypes &call) {
  const Shape &mask = call["mask"].shape;
  std::vector<int64_t> strides(call.elements("mask") == 0 ? 0 : 2);
  int64_t stride = 1;
  for (size_t d = mask.size(), dim = 4; d-- > 0; stride *= mask[d])
    if (--dim < strides.size() && mask[d] != 1)
      strides[dim] = stride;
  return strides;
}

/// Two numbers per query, for our own kernel. For cuDNN's ordered sums of a chunk of heads, sums of dq in float32 and,
/// if heads share k and v, dk and dv of every head.
int64_t cudaAttentionGradWorkspace(const CallTypes &call, const WorkspaceLimits &) {
  const Sizes sizes(call);
  const int64_t own = 2 * sizes.heads * sizes.queries * cudaSumBytes(sizes.dtype);
  if (isWideFloat(sizes.dtype) || sizes.heads * sizes.groups == 0)
    return own;
  const int64_t sharing = sizes.heads / sizes.groups;
  const HeadChunk chunk = chunkOf(call, sizes);
  const int64_t heads = chunk.batches * chunk.groups * sharing;
  const int64_t padded = heads * ((sizes.queries + 127) / 128 * 128);
  const int64_t everyHead = sharing > 1 ? heads * sizes.keys * (sizes.depth + sizes.columns) : 0;
  return std::max(own, 4 * padded * (sizes.depth + 2) + 2 * everyHead +
                           orderedSumsBytes(heads, sizes.queries, sizes.keys) + (1 << 20));
}

/// Bytes that cuDNN's ordered gradient writes in one pass and reads in the next: 2 for each visible score, and dq in
/// float32.
double attentionGradScratch(const CallTypes &call) {
  const Sizes sizes(call);
  return 2 * (2 * sizes.scores() + 4 * double(sizes.heads) * double(sizes.queries) * double(sizes.depth));
}

std::string whyPlainAttention(std::string_view kernel, const CallTypes &call) {
  const Sizes sizes(call);
  if (sizes.heads * sizes.groups * sizes.queries * sizes.keys == 0)
    return "";
  if (call["mask"].dtype == DType::Bool)
    return "its mask is of bool, and cuDNN adds masks";
  for (const int64_t width : {sizes.depth, sizes.columns})
    if (width % 8 != 0 || width > 256)
      return "a head has " + std::to_string(width) + " columns, and cuDNN takes multiples of 8 up to 256";
  if (call.elements("mask") > 0 && std::max<int64_t>(call.dim("mask", -1), 1) != sizes.keys)
    return "its mask is broadcast over keys, and cuDNN takes a number for each";
  if (!kernel.ends_with("_grad")) // by the table of support of cuDNN's guide
    return sizes.depth == sizes.columns || (sizes.depth == 192 && sizes.columns == 128)
               ? ""
               : "a head of q has " + std::to_string(sizes.depth) + " columns and one of v " +
                     std::to_string(sizes.columns) + ", and cuDNN takes equally many, or 192 and 128";
  if (sizes.queries == 1 && sizes.keys == 1)
    return "it has one query and one key, of which cuDNN makes no gradient";
  const HeadChunk chunk = chunkOf(call, sizes);
  const int64_t sharing = sizes.heads / sizes.groups, batches = call.dim("lse", 0);
  if (chunk.groups == 0)
    return "the ordered sums of the heads that share one key take " +
           std::to_string(orderedSumsBytes(sharing, sizes.queries, sizes.keys) >> 30) +
           " GiB, and cuDNN gets 4 at most";
  if (!isAligned(chunk, {batches, sizes.groups / batches}, sharing, sizes.queries, maskStridesOf(call)))
    return "it is run for " + std::to_string(chunk.batches * chunk.groups * sharing) + " heads of " +
           std::to_string(sizes.queries) +
           " queries at once, whose numbers are no multiple of 16 bytes, at which cuDNN wants what follows to begin";
  return "";
}

/// Scores over the depth, and their product with v.
double attentionFlops(const CallTypes &call) {
  const Sizes sizes(call);
  return 2 * sizes.scores() * double(sizes.depth + sizes.columns);
}

/// Scores over the depth, which the gradient draws again.
double attentionRepeatedFlops(const CallTypes &call) {
  const Sizes sizes(call);
  return 2 * sizes.scores() * double(sizes.depth);
}

/// The scores again, dq and dk over the depth; the gradient of the scores and dv over the columns.
double attentionGradFlops(const CallTypes &call) {
  const Sizes sizes(call);
  return 2 * sizes.scores() * double(3 * sizes.depth + 2 * sizes.columns);
}

} // namespace ds::kernels
