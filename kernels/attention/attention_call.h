//===- attention_call.h - the calls of attention and attention_grad ------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/HostDevice.h"

#include <algorithm>
#include <array>
#include <span>

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

  DS_HOST_DEVICE int64_t at(int64_t row) const { return first + row * stride; }
};

/// How many elements lie from batch to batch, from head to head and from row to row.
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0;

  /// Of head `index` of all batches, each of `count`.
  DS_HOST_DEVICE HeadRows rows(int64_t index, int64_t count) const {
    return {index / count * batch + index % count * head, row};
  }
};

/// Where heads of the query and groups of the key and value lie, each in a tensor of its own or a part of one. `head`
/// and `group` are of all batches.
struct HeadLayout {
  int64_t heads = 0, groups = 0;
  HeadStrides q, k, v, out;

  /// Of q and dq.
  DS_HOST_DEVICE HeadRows qRows(int64_t head) const { return q.rows(head, heads); }
  /// Of out and dout.
  DS_HOST_DEVICE HeadRows outRows(int64_t head) const { return out.rows(head, heads); }
  /// Of k and dk.
  DS_HOST_DEVICE HeadRows kRows(int64_t group) const { return k.rows(group, groups); }
  /// Of v and dv.
  DS_HOST_DEVICE HeadRows vRows(int64_t group) const { return v.rows(group, groups); }
  /// Which k and v `head` reads.
  DS_HOST_DEVICE int64_t groupOf(int64_t head) const { return head / (heads / groups); }
};

/// The operands of attention, or of its gradient, one by one.
struct AttentionOperands {
  void *operator[](size_t operand) const { return addresses[operand]; }
  std::span<void *const> all() const { return {addresses.data(), count}; }
  void add(void *address) { addresses[count++] = address; }

  std::array<void *, 10> addresses{};
  size_t count = 0;
};

/// attention or its gradient: q [batch, heads, queries, depth], k [batch, groups, keys, depth], v [batch, groups, keys,
/// columns]; with `bshd` heads and groups are the third dimension. packed_attention and its gradient are these with
/// `bshd`, but q, k and v are parts of one operand, and so are dq, dk and dv.
struct AttentionCall : HeadLayout {
  explicit AttentionCall(const Call &call);

  /// Those of a call, as attention has them: of a packed one with q, k and v, which begin somewhere in qkv.
  AttentionOperands apart(std::span<void *const> operands) const;

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

  int64_t batch = 0, queries = 0, keys = 0, depth = 0, columns = 0;
  DType dtype = DType::F32;
  double scale = 1;
  bool causal = false, masked = false, boolMask = false;
  std::array<int64_t, 4> maskStrides{}; ///< 0 where the mask is broadcast
  size_t next = 0;                      ///< the operand `out`, behind the mask, of those one by one
  CallWorkspace workspace;

private:
  void readApart(const Call &call);
  void readPacked(const Call &call);
  void readMask(const Call &call);

  size_t count_ = 0;                        ///< operands without the workspace
  size_t qkv_ = SIZE_MAX, dqkv_ = SIZE_MAX; ///< of a packed call
  std::array<int64_t, 3> parts_{};          ///< bytes from the beginning of qkv to q, k and v
};

} // namespace ds::kernels
