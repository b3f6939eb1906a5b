//===- elementwise_plan.h - where the registers of a program live ---------===//
//
// The fast kernel runs a program tile by tile. This plan says where each register of a tile is: in the operand itself
// (inputs of the results' shape are read in place, results written in place where that is safe), or in one of a few
// slots of a scratch area on the worker's stack.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/elementwise/elementwise_call.h"

#include <cstdint>
#include <vector>

namespace ds::kernels {

/// A tile's registers, all together: stays in the first-level cache beside the operands.
inline constexpr int64_t elementwiseScratchBytes = 64 << 10;
inline constexpr int elementwiseMaxSlots = 128;

struct ElementwisePlace {
  enum Kind : uint8_t { None, Operand, Slot } kind = None;
  int index = 0; ///< number of the operand or slot
};

struct ElementwiseStep {
  size_t instruction;
  ElementwisePlace sources[3], target;
};

/// An input that is broadcast: its dimensions over the results', merged; strides in elements.
struct BroadcastInput {
  int operand, slot;
  int64_t elementBytes;
  std::vector<int64_t> sizes, strides;
};

/// A constant or an input of one element: its slot is filled once for many tiles.
struct FilledSlot {
  int slot;
  int operand = -1; ///< of an input, else -1: `value` holds a constant
  DType type;
  uint64_t value = 0; ///< its bytes, from the lowest address
};

struct ElementwiseCopy {
  ElementwisePlace from;
  int operand;
  int64_t elementBytes;
};

struct ElementwisePlan {
  ElementwisePlan(const Call &call, const ElementwiseCall &program);

  std::vector<ElementwiseStep> steps;
  std::vector<BroadcastInput> broadcasts;
  std::vector<FilledSlot> filled;
  /// Inputs that are results as they are go to a slot before anything is written: results may overwrite inputs.
  std::vector<std::pair<ElementwisePlace, ElementwiseCopy>> saved;
  std::vector<ElementwiseCopy> copies; ///< results that are not written in place, at the end of a tile
  int slots = 0;
  int64_t tile = 1;      ///< elements
  int64_t slotBytes = 8; ///< tile elements of the widest register
};

} // namespace ds::kernels
