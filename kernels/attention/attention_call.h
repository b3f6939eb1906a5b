//===- attention_call.h - the calls of attention and attention_grad ------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/HostDevice.h"

#include <algorithm>

namespace ds::kernels {

/// Rows of queries and of keys whose scores are in memory at once: one tile, on the stack of a worker.
inline constexpr int64_t attentionTile = 128;

/// What hides scores from rows of queries (row 0 is the tile's first) and columns of keys.
template <typename T> struct ScoreMask {
  const T *added = nullptr;      ///< numbers that are added, or
  const uint8_t *seen = nullptr; ///< 0 where a key is hidden
  int64_t rowStride = 0, colStride = 0;
  int64_t visible = 0; ///< row r sees columns below visible + r
};

/// Where the rows of one head lie in a tensor of several: from element `first` on, `stride` from row to row.
struct HeadRows {
  int64_t first, stride;
};

/// Of `head` of all batches, each of `count` heads and `length` rows of `width`: [batch, count, length, width], or with
/// `bshd` [batch, length, count, width].
DS_HOST_DEVICE inline HeadRows rowsOfHead(bool bshd, int64_t head, int64_t count, int64_t length, int64_t width) {
  if (bshd)
    return {(head / count * length * count + head % count) * width, count * width};
  return {head * length * width, width};
}

/// attention or its gradient: q [batch, heads, queries, depth], k [batch, groups, keys, depth], v [batch, groups, keys,
/// columns]; with `bshd` heads and groups are the third dimension.
struct AttentionCall {
  explicit AttentionCall(const Call &call);

  /// Of q and dq, or with `columns` of out and dout.
  HeadRows queryRows(int64_t head, int64_t width) const { return rowsOfHead(bshd, head, heads, queries, width); }
  /// Of k and dk, or with `columns` of v and dv.
  HeadRows keyRows(int64_t group, int64_t width) const { return rowsOfHead(bshd, group, groups, keys, width); }

  /// The mask of the scores of `head` (of all batches) from `query` and `key` on.
  template <typename T> ScoreMask<T> maskAt(const void *mask, int64_t head, int64_t query, int64_t key) const {
    ScoreMask<T> result;
    result.visible = causal ? query - key + 1 : keys;
    if (!masked)
      return result;
    result.rowStride = maskStrides[2];
    result.colStride = maskStrides[3];
    const int64_t offset =
        head / heads * maskStrides[0] + head % heads * maskStrides[1] + query * maskStrides[2] + key * maskStrides[3];
    if (boolMask)
      result.seen = static_cast<const uint8_t *>(mask) + offset;
    else
      result.added = static_cast<const T *>(mask) + offset;
    return result;
  }

  /// The first key that no query below `query` sees.
  int64_t keysSeen(int64_t query) const { return causal ? std::min(keys, query) : keys; }
  /// Which k and v `head` (of all batches) reads.
  int64_t groupOf(int64_t head) const { return head / (heads / groups); }

  int64_t batch = 0, heads = 0, groups = 0, queries = 0, keys = 0, depth = 0, columns = 0;
  DType dtype = DType::F32;
  double scale = 1;
  bool causal = false, masked = false, boolMask = false, bshd = false;
  std::array<int64_t, 4> maskStrides{}; ///< 0 where the mask is broadcast
  size_t next = 0;                      ///< the operand `out`, behind the mask
  CallWorkspace workspace;

private:
  void readMask(const Call &call);
};

} // namespace ds::kernels
