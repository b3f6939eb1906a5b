//===- elementwise_cuda_plan.h - a program as the GPU's interpreter runs it --===//
//
// A register that only the next step reads stays where it was made ("previous"); the others get slots, which are taken
// again after their last use. Inputs are read where they are used. Plain C++: the host's tests run the same steps.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/elementwise/elementwise_call.h"

#include <cstdint>
#include <vector>

namespace ds::kernels::cuda {

/// Where a step finds an operand.
enum class Source : uint8_t { None, Previous, Slot, Input };

inline constexpr uint16_t noSlot = 0xffff;

struct ElementwiseStep {
  ElementwiseOp op;
  DType type, from; ///< of the result, and of the first operand
  Source sources[3];
  uint16_t indices[3]; ///< of a slot or an input
  uint16_t slot;       ///< that keeps the result, or noSlot
  double constant;     ///< of Constant
};

/// How an input is read.
enum class Spread : uint8_t { Full, Scalar, Strided };

struct ElementwiseInput {
  DType type;
  Spread spread;
  int64_t strides[maxRank]; ///< by the plan's dimensions, in elements
};

struct ElementwiseResult {
  DType type;
  Source source;
  uint16_t index;
};

/// Most slots, steps and tensors of one launch.
inline constexpr int mostSlots = 128, mostSteps = 640, mostTensors = 128;
/// What most programs need; they get a launch of their own, whose arguments fit 4 KiB.
inline constexpr int fewSlots = 8, fewSteps = 40, fewTensors = 12;

struct ElementwisePlan {
  explicit ElementwisePlan(const Call &call);

  std::vector<ElementwiseStep> steps;
  std::vector<ElementwiseInput> inputs;
  std::vector<ElementwiseResult> results;
  std::vector<int64_t> sizes; ///< of the merged dimensions of the results
  int64_t elements = 0;
  int slots = 0;
  bool allFloat = true; ///< float32, floats of 16 bits and bool alone: computed in float32
  bool small() const {
    return slots <= fewSlots && steps.size() <= size_t(fewSteps) &&
           inputs.size() + results.size() <= size_t(fewTensors);
  }

private:
  void mergeDimensions(const ElementwiseCall &call);
  void assignSlots(const ElementwiseCall &call);
};

} // namespace ds::kernels::cuda
