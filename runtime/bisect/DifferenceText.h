//===- DifferenceText.h - what --bisect says ------------------------------===//
#pragma once

#include "core/DType.h"
#include "runtime/bisect/Comparison.h"
#include "runtime/plan/plan.pb.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ds::runtime {

/// Elements of a tensor from `first` on.
struct TensorBytes {
  DType dtype;
  uint64_t first;
  std::vector<std::byte> bytes;
};

/// How many tensors were compared.
std::string textOf(const Comparison &comparison);

/// The tensor, the commands that wrote it in both plans, and the first element that differs.
std::string textOf(const Difference &difference, const std::array<const plan::proto::Plan *, 2> &plans,
                   const std::array<std::string, 2> &paths, const TensorBytes &one, const TensorBytes &other);

} // namespace ds::runtime
