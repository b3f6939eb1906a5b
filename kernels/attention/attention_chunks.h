//===- attention_chunks.h - heads of attention_grad that cuDNN takes at once //
//
// cuDNN below 9.25 adds dq's parts in a fixed order on Hopper by keeping a number for each score: 2 bytes for each
// head, query and key, which for one batch of Llama 8B at 8192 tokens is 4 GiB. Heads are independent of each other, so
// its graph may run for some of them, again and again, with the same bits. cuDNN's guide to scaled dot product
// attention.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <span>

namespace ds::kernels {

/// So many batches with all of their groups, or of one batch so many groups; each group with the heads that read it.
struct HeadChunk {
  int64_t batches = 0, groups = 0; ///< 0: not even one group fits
};

/// Whether what cuDNN reads of every chunk begins at a multiple of 16 bytes where the whole does: float32 numbers of
/// its `queries`, behind which the frontend puts the engine's workspace too, and numbers of 16 bits of a mask, which
/// lie `maskStrides` elements apart from batch to batch and from head to head (0: broadcast; none: no mask). `of`: all.
inline bool isAligned(const HeadChunk &chunk, const HeadChunk &of, int64_t headsOfGroup, int64_t queries,
                      std::span<const int64_t> maskStrides) {
  const int64_t heads = chunk.groups * headsOfGroup;
  if (chunk.batches * heads * queries % 4 != 0)
    return false;
  if (maskStrides.empty())
    return true;
  const bool cutsBatches = chunk.batches < of.batches, cutsGroups = chunk.groups < of.groups;
  return (!cutsBatches || chunk.batches * maskStrides[0] % 8 == 0) && (!cutsGroups || heads * maskStrides[1] % 8 == 0);
}

/// What the ordered sums of `heads` heads of all batches take.
inline int64_t orderedSumsBytes(int64_t heads, int64_t queries, int64_t keys) {
  const auto padded = [](int64_t length) { return (length + 63) / 64 * 64; };
  return 2 * heads * padded(queries) * padded(keys) + 4 * heads * queries;
}

/// As many as take at most 1 GiB; one group, if that takes at most 4.
inline HeadChunk headChunk(int64_t batches, int64_t groups, int64_t headsOfGroup, int64_t queries, int64_t keys) {
  const auto fits = [&](int64_t count, int64_t gibibytes) { // of groups
    return orderedSumsBytes(count * headsOfGroup, queries, keys) <= gibibytes << 30;
  };
  for (int64_t count = batches; count > 0; --count)
    if (batches % count == 0 && fits(count * groups, 1))
      return {count, groups};
  for (int64_t count = groups; count > 0; --count)
    if (groups % count == 0 && fits(count, count == 1 ? 4 : 1))
      return {1, count};
  return {};
}

} // namespace ds::kernels
