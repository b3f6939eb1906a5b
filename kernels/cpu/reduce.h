//===- reduce.h - the call of reduce_sum, reduce_mean and reduce_max ------===//
#pragma once

#include "kernels/cpu/Call.h"

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

/// By kernel name.
Reduction reductionNamed(std::string_view kernel);

} // namespace ds::kernels
