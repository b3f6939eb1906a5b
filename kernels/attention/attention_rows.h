//===- attention_rows.h - scores one at a time, for the references --------===//
#pragma once

#include "kernels/attention/attention_call.h"

#include <cmath>
#include <limits>

namespace ds::kernels {

template <typename T> struct AttentionRows {
  const AttentionCall &call;
  const T *q, *k;
  const void *mask;

  /// scale q k^T + mask of one query and key of `head` (of all batches); -inf where hidden.
  double score(int64_t head, int64_t query, int64_t key) const {
    const ScoreMask<T> here = call.maskAt<T>(mask, head, query, key);
    if (here.visible <= 0 || (here.seen && !*here.seen))
      return -std::numeric_limits<double>::infinity();
    const T *left = q + queryAt(head, query, call.depth), *right = k + keyAt(head, key, call.depth);
    double sum = 0;
    for (int64_t l = 0; l < call.depth; ++l)
      sum += double(left[l]) * double(right[l]);
    return call.scale * sum + (here.added ? double(*here.added) : 0.0);
  }

  /// The first element of a row of q or dq, or with `columns` of out or dout.
  int64_t queryAt(int64_t head, int64_t query, int64_t width) const {
    const HeadRows rows = call.queryRows(head, width);
    return rows.first + query * rows.stride;
  }
  /// Of k or dk, or with `columns` of v or dv, that `head` reads.
  int64_t keyAt(int64_t head, int64_t key, int64_t width) const {
    const HeadRows rows = call.keyRows(call.groupOf(head), width);
    return rows.first + key * rows.stride;
  }

  /// log sum exp of a row; +inf where every key is hidden.
  double logSum(int64_t head, int64_t query) const {
    double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t key = 0; key < call.keys; ++key)
      maximum = std::max(maximum, score(head, query, key));
    if (maximum == -std::numeric_limits<double>::infinity())
      return std::numeric_limits<double>::infinity();
    for (int64_t key = 0; key < call.keys; ++key)
      sum += std::exp(score(head, query, key) - maximum);
    return maximum + std::log(sum);
  }
};

} // namespace ds::kernels
