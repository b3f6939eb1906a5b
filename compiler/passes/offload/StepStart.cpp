//===- StepStart.cpp - what a step begins with, for all of its calls ------===//
#include "compiler/passes/offload/StepStart.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;
using namespace ds;

plan::RoutineOp ds::stepStart(plan::RoleOp role) {
  constexpr StringLiteral name = "start_step";
  if (auto known = SymbolTable::lookupSymbolIn(role, name))
    return cast<plan::RoutineOp>(known);
  OpBuilder builder(*role.getOps<plan::ProgramOp>().begin()); // behind all buffers
  auto routine = plan::RoutineOp::create(builder, role.getLoc(), name, plan::Phase::Begin, IntegerAttr());
  routine.getBody().emplaceBlock();
  for (auto program : role.getOps<plan::ProgramOp>()) {
    if (program.getName() != "step")
      continue;
    uint64_t last = 0;
    for (auto call : program.getOps<plan::CallOp>())
      last = std::max<uint64_t>(last, call.getMicrobatch());
    builder.setInsertionPointToStart(&program.getBody().front());
    plan::CallOp::create(builder, role.getLoc(), name, last);
  }
  return routine;
}

int64_t ds::callsIn(plan::ProgramOp program, Attribute routine) {
  return llvm::count_if(program.getOps<plan::CallOp>(),
                        [&](plan::CallOp call) { return call.getRoutineAttr().getAttr() == routine; });
}
