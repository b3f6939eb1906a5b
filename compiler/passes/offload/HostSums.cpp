//===- HostSums.cpp - gradients that the host makes of few rows -----------===//
#include "compiler/passes/offload/HostSums.h"

#include "compiler/passes/offload/OperandCopies.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ds;

namespace {

bool runs(Operation *op, StringRef kernel) {
  auto command = dyn_cast_or_null<plan::KernelOp>(op);
  return command && command.getKernel() == kernel;
}

/// What alone writes a buffer of the call that `reader` alone reads; null where that is not so.
Operation *makerOf(plan::BufferOp buffer, Operation *reader) {
  if (buffer.getScope() != plan::Scope::Call)
    return nullptr;
  Operation *maker = nullptr;
  for (Operation *user : buffer->getUsers()) {
    if (user == reader)
      continue;
    if (maker && maker != user)
      return nullptr;
    maker = user;
  }
  auto command = dyn_cast_or_null<plan::CommandOpInterface>(maker);
  if (!command || maker->getParentOp() != reader->getParentOp() || !maker->isBeforeInBlock(reader))
    return nullptr;
  for (auto [index, operand] : llvm::enumerate(command.getBuffers()))
    if (operand.getDefiningOp() == buffer && command.getAccess(unsigned(index)) != plan::Access::Write)
      return nullptr;
  return maker;
}

/// Whether it is the gradient of a lookup, larger than the rows that it is made of.
bool makesTableOfRows(Operation *op) {
  if (!runs(op, "gather_grad"))
    return false;
  auto command = cast<plan::CommandOpInterface>(op);
  int64_t read = 0, written = 0;
  for (unsigned index = 0; index < command.getBuffers().size(); ++index)
    (command.reads(index) ? read : written) += plan::tensorBytes(command.getTensor(index));
  return read < written;
}

/// Whether a summand, or a summand of one, is made of rows; adds what the host then runs, in the order of the routine.
bool collect(plan::CommandOpInterface sum, HostSums &found) {
  bool any = false;
  for (auto [index, operand] : llvm::enumerate(sum.getBuffers())) {
    auto buffer = operand.getDefiningOp<plan::BufferOp>();
    Operation *maker = sum.reads(unsigned(index)) ? makerOf(buffer, sum) : nullptr;
    if (!maker)
      continue;
    const bool ofRows = makesTableOfRows(maker);
    if (!ofRows && !(runs(maker, "elementwise") && collect(cast<plan::CommandOpInterface>(maker), found)))
      continue;
    if (ofRows)
      found.kernels.insert(maker);
    found.buffers.insert(buffer);
    any = true;
  }
  if (any)
    found.kernels.insert(sum);
  return any;
}

} // namespace

HostSums ds::findHostSums(plan::RoutineOp routine, llvm::function_ref<bool(Value)> isThere) {
  HostSums found;
  for (auto kernel : routine.getOps<plan::KernelOp>()) {
    auto command = cast<plan::CommandOpInterface>(kernel.getOperation());
    for (auto [index, operand] : llvm::enumerate(command.getBuffers()))
      if (runs(kernel, "elementwise") && command.writes(unsigned(index)) && isThere(operand))
        collect(command, found);
  }
  return found;
}

SmallVector<LeavingSummand> ds::leavingFor(const HostSums &sums) {
  SmallVector<LeavingSummand> leaving;
  for (Operation *kernel : sums.kernels) {
    auto command = cast<plan::CommandOpInterface>(kernel);
    for (auto [index, operand] : llvm::enumerate(command.getBuffers()))
      if (auto buffer = operand.getDefiningOp<plan::BufferOp>();
          command.reads(unsigned(index)) && buffer.getScope() == plan::Scope::Call && !sums.buffers.contains(buffer))
        if (Operation *maker = lastWriter(command, unsigned(index)))
          leaving.push_back({maker, plan::tensorBytes(command.getTensor(unsigned(index)))});
  }
  return leaving;
}
