//===- OrderMessages.h - compute against what arrives and what leaves ---------===//
#pragma once

#include "compiler/analysis/InFlight.h"
#include "compiler/passes/plan/CommandWriter.h"
#include "compiler/passes/plan/Placement.h"

namespace ds {

/// Orders the compute of a role's routines against feeds and messages, which run beside it: the first command that uses
/// what arrives waits for it, the last fragment of a micro-batch that takes it frees its slot; one that writes what is
/// sent waits until the slot has been sent, and so does one that may end the value's life.
class OrderMessages {
public:
  /// `microbatches`: of the longest program.
  OrderMessages(const InFlight &inFlight, Placement &placement, CommandWriter &writer, int64_t microbatches)
      : inFlight_(inFlight), placement_(placement), writer_(writer), microbatches_(microbatches) {}

  /// `routine` is what `fragment` became, complete.
  void connect(dist::FragmentOp fragment, plan::RoutineOp routine);

private:
  mlir::Operation *firstUser(plan::RoutineOp routine, const Arrival &arrival);
  mlir::Operation *computeCommand(plan::RoutineOp routine, bool last);

  const InFlight &inFlight_;
  Placement &placement_;
  CommandWriter &writer_;
  int64_t microbatches_;
};

} // namespace ds
