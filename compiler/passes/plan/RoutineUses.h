//===- RoutineUses.h - the straight line of a routine, by buffers -------------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "llvm/ADT/DenseMap.h"

namespace ds {

/// One operand of one command.
struct RoutineUse {
  int64_t position; // of the command in its routine
  plan::CommandOpInterface command;
  unsigned index;

  bool reads() { return command.reads(index); }
  bool writes() { return command.writes(index); }
  /// Whether it may touch bytes [begin, end) of its buffer.
  bool touches(int64_t begin, int64_t end) {
    const auto [first, last] = command.getByteRange(index);
    return first < end && begin < last;
  }
};

/// What the commands of a routine, one after another, use buffers for; kept while buffers are merged.
class RoutineUses {
public:
  explicit RoutineUses(plan::RoutineOp routine);

  /// In the order of commands, unless buffers were merged.
  llvm::ArrayRef<RoutineUse> of(plan::BufferOp buffer) const;
  int64_t positionOf(mlir::Operation *command) const { return position_.lookup(command); }

  /// All that uses `from`, a buffer of scope call, uses `into` from `offset` on, on the rank at coordinate c of
  /// `communicator` by c * `stride` further. Erases `from`.
  void merge(plan::BufferOp from, plan::BufferOp into, int64_t offset = 0, int64_t stride = 0,
             mlir::FlatSymbolRefAttr communicator = {});
  void erase(plan::CommandOpInterface command);

private:
  // Looked up, never iterated.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<RoutineUse, 4>> uses_;
  llvm::DenseMap<mlir::Operation *, int64_t> position_;
};

} // namespace ds
