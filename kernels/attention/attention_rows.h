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
    const T *left = q + call.qRows(head).at(query), *right = k + call.kRows(call.groupOf(head)).at(key);
    double sum = 0;
    for (int64_t l = 0; l < call.depth; ++l)
      sum += double(left[l]) * double(right[l]);
    return call.scale * sum + (here.added ? double(*here.added) : 0.0);
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
