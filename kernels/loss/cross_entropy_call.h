//===- cross_entropy_call.h - the calls of cross_entropy and its gradient --===//
#pragma once

#include "kernels/Call.h"
#include "kernels/Numbers.h"

#include <cstdint>

namespace ds::kernels {

/// logits [rows, columns], of which the first are classes and the rest is padding; labels [rows], lse [rows].
struct CrossEntropyCall {
  explicit CrossEntropyCall(const Call &call)
      : rows(call.shape("logits")[0]), columns(call.shape("logits")[1]),
        classes(call.has("classes") ? call.integerIn("classes", 1, columns) : columns),
        ignoreIndex(call.integer("ignore_index")), dtype(call.dtype()), mean(call.text("reduction") == "mean") {}

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

  int64_t rows, columns, classes, ignoreIndex;
  DType dtype;
  bool mean;
};

/// Makes KernelT<Stored, T> of the logits' type in memory and the type that is computed with.
template <template <typename, typename> typename KernelT>
std::unique_ptr<Kernel> makeByLogits(const CrossEntropyCall &call) {
  if (isNarrowFloat(call.dtype))
    return withNarrowFloat(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
      return std::make_unique<KernelT<decltype(zero), float>>(call);
    });
  if (call.dtype == DType::F32)
    return std::make_unique<KernelT<float, float>>(call);
  return std::make_unique<KernelT<double, double>>(call);
}

} // namespace ds::kernels
