//===- attention_cuda_plan.h - our own attention, for a launch -----------===//
#pragma once

#include "kernels/HostDevice.h"
#include "kernels/attention/attention_call.h"

#include <cmath>

namespace ds::kernels::cuda {

/// calls/attention.h's AttentionCall as plain numbers, passed by value.
struct AttentionSpace : HeadLayout {
  explicit AttentionSpace(const AttentionCall &call)
      : HeadLayout(call), batch(call.batch), queries(call.queries), keys(call.keys), depth(call.depth),
        columns(call.columns), scale(call.scale), causal(call.causal), masked(call.masked), boolMask(call.boolMask) {
    for (size_t d = 0; d < 4; ++d)
      maskStrides[d] = call.maskStrides[d];
  }

  /// The score of a query and a key from their product: scale * product + mask; -inf where hidden.
  template <typename S, typename Mask>
  DS_HOST_DEVICE S score(S product, const Mask &mask, int64_t head, int64_t query, int64_t key) const {
    if (query >= queries || key >= keys || (causal && key > query))
      return S(-HUGE_VAL);
    const S scaled = S(scale) * product;
    if (!masked)
      return scaled;
    const int64_t at =
        head / heads * maskStrides[0] + head % heads * maskStrides[1] + query * maskStrides[2] + key * maskStrides[3];
    if (boolMask)
      return mask.isSeen(at) ? scaled : S(-HUGE_VAL);
    return scaled + mask.added(at);
  }

  int64_t batch, queries, keys, depth, columns;
  double scale;
  bool causal, masked, boolMask;
  int64_t maskStrides[4];
};

/// Rows of a block's tile, by its warps; lanes are the elements across, 32 at a time.
inline constexpr int attentionWarps = 4, attentionRowsPerWarp = 4,
                     attentionRows = attentionWarps * attentionRowsPerWarp;
/// Elements of a dot product in shared memory at a time, and columns of the result that a block keeps.
inline constexpr int attentionDepth = 32, attentionColumns = 128;

} // namespace ds::kernels::cuda
