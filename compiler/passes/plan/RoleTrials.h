//===- RoleTrials.h - the bytes a role will need, before it is laid out -----===//
#pragma once

#include "compiler/passes/plan/RoleSteps.h"

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>

namespace ds {

/// What ds-reuse-dying-operands, ds-order-queues, ds-assign-offsets and ds-order-for-memory will do.
struct TrialOptions {
  int64_t alignment = 1; ///< bytes
  double patience = 1;   ///< of ds-order-queues
  bool reuses = true, reorders = true;
};

/// Copies of a role that is about to be given to ds-reuse-dying-operands: where micro-batches overlap, one in which all
/// dying operands are reused and one in which the gradient of the loss alone is; of these the pass takes the smaller.
/// Bounds by what is alive at once come first, since offsets are dear. A failure has been reported.
class RoleTrials {
public:
  RoleTrials(plan::RoleOp role, const TrialOptions &options, KnownSolutions &known);
  ~RoleTrials();
  RoleTrials(const RoleTrials &) = delete;
  RoleTrials &operator=(const RoleTrials &) = delete;

  /// Whether it needs at most `room` bytes of device memory; `mayFit` is false only where it does not.
  mlir::FailureOr<bool> mayFit(int64_t room);
  mlir::FailureOr<bool> fits(int64_t room);

  /// The bytes it will have.
  mlir::FailureOr<RoleBytes> bytes();

  /// Whether all dying operands are to be reused, and not the gradient of the loss alone.
  mlir::FailureOr<bool> reusesAll();

private:
  struct Trial {
    plan::RoleOp role; // queues are ordered
    std::optional<RoleBytes> least, leastReordered, bytes;
  };

  mlir::FailureOr<RoleBytes> leastOf(Trial &trial);
  mlir::FailureOr<RoleBytes> leastReorderedOf(Trial &trial);
  /// By the full effort, or where `enough` is not 0 until as many are found to do.
  mlir::FailureOr<RoleBytes> bytesOf(Trial &trial, int64_t enough = 0);
  mlir::FailureOr<bool> mayFit(Trial &trial, int64_t room);
  /// Whether no offsets of the trial are as small as `bytes`.
  mlir::FailureOr<bool> isAbove(Trial &trial, RoleBytes bytes);

  TrialOptions options_;
  KnownSolutions &known_;
  llvm::SmallVector<Trial, 2> trials_; // first the one in which less is alive
};

} // namespace ds
