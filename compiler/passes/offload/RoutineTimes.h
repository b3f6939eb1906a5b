//===- RoutineTimes.h - when the commands of a routine begin --------------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstddef>
#include <vector>

namespace ds {

/// When the ops of a routine begin on the compute queue, by the cost model (compiler/analysis/Cost.h), in seconds from
/// its start. Collectives, copies between memories and updates by the host count as nothing: they run beside.
class RoutineTimes {
public:
  explicit RoutineTimes(plan::RoutineOp routine)
      : RoutineTimes(routine, [](plan::CommandOpInterface command) { return isHostUpdate(command); }) {}
  /// For a routine of which the host will run other commands.
  RoutineTimes(plan::RoutineOp routine, llvm::function_ref<bool(plan::CommandOpInterface)> runsOnHost);

  const std::vector<mlir::Operation *> &ops() const { return ops_; }
  size_t indexOf(mlir::Operation *op) const { return indices_.lookup(op); }
  /// Of the op of an index; the end of the routine, behind the last.
  double begin(size_t index) const { return begins_[index]; }
  double end() const { return begins_.back(); }
  /// The last op that begins no later; the first op, where none does.
  mlir::Operation *at(double seconds) const;

private:
  /// Of a parameter in host memory.
  static bool isHostUpdate(plan::CommandOpInterface command);

  std::vector<mlir::Operation *> ops_;
  std::vector<double> begins_; // and the end
  llvm::DenseMap<mlir::Operation *, size_t> indices_;
};

} // namespace ds
