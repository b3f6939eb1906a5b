//===- GradientStays.h - uses of the same bytes of a gradient -------------===//
#pragma once

#include "compiler/passes/offload/OperandCopies.h"
#include "dialects/Plan/Plan.h"

#include "llvm/ADT/SmallVector.h"

namespace ds {

/// Bytes [begin, end) of a gradient.
struct ByteRange {
  int64_t begin, end;

  bool overlaps(const ByteRange &other) const { return begin < other.end && other.begin < end; }
};

/// One operand of a command that is a gradient which has moved.
struct GradientUse {
  plan::CommandOpInterface command;
  unsigned index;

  ByteRange range() const {
    const auto [begin, end] = plan::CommandOpInterface(command).getByteRange(index);
    return {begin, end};
  }
  bool reads() const { return plan::CommandOpInterface(command).reads(index); }
  bool writes() const { return plan::CommandOpInterface(command).writes(index); }
  mlir::RankedTensorType type() const { return plan::CommandOpInterface(command).getTensor(index); }
  TensorPlace place() const { return placeOf(command, index); }
};

/// Uses of the same bytes of one gradient in one routine, in their order.
struct GradientStay {
  mlir::Value away;
  ByteRange range;
  llvm::SmallVector<GradientUse> uses;
  bool beginsWithZeros = false;
  bool isLate = false; // leaves in the update

  mlir::Operation *first() const { return uses.front().command; }
  /// One kernel that adds to what lies there.
  bool isAddition() const {
    auto kernel = llvm::dyn_cast<plan::KernelOp>(first());
    return kernel && kernel.getKernel() == "elementwise" &&
           llvm::all_of(uses, [&](const GradientUse &use) { return use.command == first(); }) &&
           llvm::any_of(uses, [](const GradientUse &use) { return use.reads(); });
  }
};

/// Adds a use to the stays of one routine: those that it touches become one.
void addUse(llvm::SmallVector<GradientStay> &stays, mlir::Value away, const GradientUse &use);

/// Of a range, what none of `parts` has.
llvm::SmallVector<ByteRange> gapsIn(ByteRange range, llvm::SmallVector<ByteRange> parts);

} // namespace ds
