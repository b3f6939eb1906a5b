//===- LevelTrials.h - the bytes that levels of recompute need, without plans ---===//
#pragma once

#include "compiler/driver/Diagnostics.h"
#include "compiler/passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ds::driver {

/// Of a differentiated module whose arenas, as far as there is a choice, are all in device memory. The module is cut
/// into stages once; a level goes as far as buffers. What is alive at once may then tell that it does not fit, and the
/// first offsets within the room that it does (RoleTrials.h). What a role needs follows from what its own stages
/// compute again: a role that did not fit is not tried again with the same.
class LevelTrials {
public:
  /// What a level needs on the role that needs most.
  struct Needs {
    int64_t level = 0, bytes = 0; // of device memory
    size_t role = 0;
  };

  /// `module` stays as it is.
  LevelTrials(mlir::ModuleOp module, const CompileOptions &options, const DiagnosticCollector &diagnostics)
      : module_(module), options_(options), diagnostics_(diagnostics) {}

  bool fits(int64_t level, int64_t room);

  /// Nothing where a level needs more than `room`.
  std::optional<Needs> needs(int64_t level, int64_t room);

  /// A plan of a level but for queues and offsets. Who goes on to plan it verifies it.
  mlir::OwningOpRef<mlir::ModuleOp> buffersAt(int64_t level);

  /// The same; null where a level needs more than `room` by what is alive at once.
  mlir::OwningOpRef<mlir::ModuleOp> buffersWithin(int64_t level, int64_t room);

  /// The highest level below at which the role that needs most computes less again; -1: there is none.
  int64_t changeBelow(const Needs &needs);

  /// Whether a role did not fit into `buffersWithin` by its state and gradients alone, which no level changes.
  bool isHopeless(int64_t room) const { return stateBytes_ > room; }

  /// Commands of all roles in `buffersWithin`.
  int64_t commands() const { return commands_; }

private:
  /// A role that did not fit, and how much of it was computed again.
  struct Refusal {
    int64_t room, marks;
    size_t role;
  };

  mlir::ModuleOp cut();
  using Trials = std::vector<std::unique_ptr<RoleTrials>>;
  std::optional<Trials> trialsWithin(mlir::ModuleOp module, int64_t level, int64_t room);
  bool isRefused(int64_t level, int64_t room);
  void refuse(int64_t level, int64_t room, size_t role);
  /// How many ops of a role a level computes again. That says which, for a level repeats all that a lower one does.
  int64_t marksOf(int64_t level, size_t role);
  bool check(mlir::FailureOr<bool> answer) const;

  mlir::ModuleOp module_;
  CompileOptions options_;
  const DiagnosticCollector &diagnostics_;
  mlir::OwningOpRef<mlir::ModuleOp> cut_;
  KnownSolutions known_;
  std::vector<std::vector<int64_t>> levels_; // by role: of each op that may be computed again, the least; ascending
  std::vector<Refusal> refusals_;
  int64_t stateBytes_ = 0, commands_ = 0;
};

} // namespace ds::driver
