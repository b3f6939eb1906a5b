//===- RoutineTimes.cpp - when the commands of a routine begin ------------===//
#include "compiler/passes/offload/RoutineTimes.h"

#include "compiler/analysis/Cost.h"
#include "compiler/passes/offload/OperandCopies.h"

#include <algorithm>

using namespace mlir;
using namespace ds;

/// Whether compute has nothing to do with it.
static bool runsBeside(Operation &op) {
  auto copy = dyn_cast<plan::CopyOp>(op);
  return isa<plan::CollectiveOp>(op) || (copy && spaceOf(copy.getBuffers()[0]) != spaceOf(copy.getBuffers()[1]));
}

bool RoutineTimes::isHostUpdate(plan::CommandOpInterface command) {
  return isUpdate(command) && spaceOf(command.getBuffers()[0]) == plan::MemorySpace::Host;
}

RoutineTimes::RoutineTimes(plan::RoutineOp routine, llvm::function_ref<bool(plan::CommandOpInterface)> runsOnHost) {
  double clock = 0;
  for (Operation &op : routine.getBody().front()) {
    indices_[&op] = ops_.size();
    ops_.push_back(&op);
    begins_.push_back(clock);
    if (auto command = dyn_cast<plan::CommandOpInterface>(op); command && !runsBeside(op) && !runsOnHost(command))
      clock += seconds(command);
  }
  begins_.push_back(clock);
}

Operation *RoutineTimes::at(double seconds) const {
  const auto next = std::upper_bound(begins_.begin(), begins_.end() - 1, seconds);
  return ops_[next == begins_.begin() ? 0 : size_t(next - begins_.begin()) - 1];
}
