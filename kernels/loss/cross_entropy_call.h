//===- cross_entropy_call.h - the calls of cross_entropy and its gradient --===//
#pragma once

#include "kernels/Call.h"

#include <cstdint>

namespace ds::kernels {

/// logits [rows, classes], labels [rows], lse [rows].
struct CrossEntropyCall {
  CrossEntropyCall(const Call &call, size_t operands, size_t lse) {
    call.expectOperands(operands);
    call.expectFloat(0);
    call.require(call.shape(0).size() == 2, "logits must have shape [N, C], not " + toString(call.shape(0)));
    rows = call.shape(0)[0];
    classes = call.shape(0)[1];
    dtype = call.dtype(0);
    call.expectDType(1, DType::I64);
    call.expectShape(1, {rows});
    call.expectDType(lse, dtype);
    call.expectShape(lse, {rows});
    ignoreIndex = call.integer("ignore_index");
    const std::string &reduction = call.text("reduction");
    call.require(reduction == "mean" || reduction == "sum",
                 "attribute 'reduction' must be mean or sum, not '" + reduction + "'");
    mean = reduction == "mean";
  }

  /// Counts the labels that are not ignored; fails if one of them is no class.
  Status countLabels(const char *kernel, const int64_t *labels, int64_t &count) const noexcept {
    count = 0;
    for (int64_t row = 0; row < rows; ++row) {
      if (labels[row] == ignoreIndex)
        continue;
      if (labels[row] < 0 || labels[row] >= classes)
        return Status::failure("kernel '%s': label %lld at position %lld is out of range [0, %lld) and is not the "
                               "ignored label %lld",
                               kernel, static_cast<long long>(labels[row]), static_cast<long long>(row),
                               static_cast<long long>(classes), static_cast<long long>(ignoreIndex));
      ++count;
    }
    return Status::success();
  }

  int64_t rows = 0, classes = 0, ignoreIndex = -100;
  DType dtype = DType::F32;
  bool mean = true;
};

} // namespace ds::kernels
