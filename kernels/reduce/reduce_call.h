//===- reduce_call.h - the call of reduce_sum, reduce_mean and reduce_max --===//
#pragma once

#include "kernels/Call.h"

#include <cstdint>
#include <vector>

namespace ds::kernels {

enum class Reduction { Sum, Mean, Max };

struct ReduceCall {
  ReduceCall(const Call &call, Reduction reduction);

  Reduction reduction;
  DType dtype = DType::F32;
  Shape x;
  std::vector<bool> reduced; ///< by dimension of x
  int64_t outputs = 0;       ///< elements of y
  int64_t length = 0;        ///< elements of x behind each
};

/// A dimension that is walked in steps of `stride` elements.
struct StridedDimension {
  int64_t size, stride;
};

/// The dimensions of x that are kept and those that are reduced, without those of size 1; neighbours of one kind are
/// merged.
struct ReduceDimensions {
  explicit ReduceDimensions(const ReduceCall &call);
  std::vector<StridedDimension> kept, reduced;
  bool innerReduced = false; ///< the innermost one is reduced
};

int64_t countOf(const std::vector<StridedDimension> &dimensions);
/// Where row-major index `index` of the dimensions lies, in elements.
int64_t offsetOf(const std::vector<StridedDimension> &dimensions, int64_t index);

/// By kernel name.
Reduction reductionNamed(std::string_view kernel);

} // namespace ds::kernels
