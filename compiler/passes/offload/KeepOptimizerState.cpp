//===- KeepOptimizerState.cpp - a share of the optimizer state stays on the device ---===//
//
// What a link cannot hide need not use it. State that stays is updated by the device, and its gradient and parameter
// never leave. The first layers' stays first: their parameters are wanted when the forward begins, and their gradients
// are there when the backward ends, so there is least to hide their transfers behind.
// Cf. Twin-Flow of ZeRO-Offload++ (DeepSpeed, 2023), where a user says the share.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "dialects/Plan/Plan.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace ds {
#define GEN_PASS_DEF_KEEPOPTIMIZERSTATE
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

using State = llvm::SetVector<Operation *>; // buffers

int64_t bytesOf(const State &state) {
  int64_t bytes = 0;
  for (Operation *buffer : state)
    bytes += int64_t(cast<plan::BufferOp>(buffer).getBytes());
  return bytes;
}

bool isParameter(Value operand) {
  auto buffer = operand.getDefiningOp<plan::BufferOp>();
  return buffer.getScope() == plan::Scope::Plan && buffer.getCategory() == plan::Category::Weights;
}

/// Parameters in the order in which the role's step first uses them.
llvm::SetVector<Value> parametersByUse(plan::RoleOp role) {
  llvm::SetVector<Value> parameters;
  for (auto program : role.getOps<plan::ProgramOp>()) {
    if (program.getName() != "step")
      continue;
    for (auto call : program.getOps<plan::CallOp>())
      for (auto command : SymbolTable::lookupNearestSymbolFrom<plan::RoutineOp>(program, call.getRoutineAttr())
                              .getOps<plan::CommandOpInterface>())
        for (Value operand : command.getBuffers())
          if (isParameter(operand))
            parameters.insert(operand);
  }
  return parameters;
}

struct KeepOptimizerState : ds::impl::KeepOptimizerStateBase<KeepOptimizerState> {
  using KeepOptimizerStateBase::KeepOptimizerStateBase;

  void runOnOperation() override {
    if (!(share >= 0 && share <= 1)) {
      getOperation().emitError() << "share is " << share.getValue() << "; it must be from 0 to 1";
      return signalPassFailure();
    }
    for (auto role : getOperation().getOps<plan::RoleOp>())
      keep(role);
  }

  void keep(plan::RoleOp role) const {
    const llvm::MapVector<Value, State> states = statesOf(role);
    int64_t all = 0;
    for (const auto &[parameter, state] : states)
      all += bytesOf(state);
    auto room = int64_t(share * double(all));
    for (const auto &[parameter, state] : states)
      if (const int64_t bytes = bytesOf(state); bytes <= room) {
        room -= bytes;
        for (Operation *buffer : state)
          cast<plan::BufferOp>(buffer).setStays(true);
      }
  }

  /// What would leave, by the parameter that it updates, in the order of parametersByUse.
  llvm::MapVector<Value, State> statesOf(plan::RoleOp role) const {
    llvm::MapVector<Value, State> states;
    for (Value parameter : parametersByUse(role))
      for (Operation *user : parameter.getUsers())
        if (isUpdate(user))
          for (Value operand : user->getOperands())
            if (auto buffer = operand.getDefiningOp<plan::BufferOp>(); isStateAway(buffer, leastBytes))
              states[parameter].insert(buffer);
    return states;
  }
};

} // namespace
