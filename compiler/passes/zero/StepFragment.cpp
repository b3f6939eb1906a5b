//===- StepFragment.cpp - what a step computes once, before all micro-batches ---===//
#include "compiler/passes/zero/StepFragment.h"

#include "compiler/analysis/Stages.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ds;

dist::FragmentOp ds::stepFragment(dist::FragmentOp forward, int64_t stages, SymbolTable &symbols) {
  const auto stage = int64_t(*forward.getStage());
  const std::string name = numberedName("gather", stage, stages);
  if (auto known = symbols.lookup<dist::FragmentOp>(name))
    return known;
  OpBuilder builder(forward);
  auto once = dist::FragmentOp::create(builder, forward.getLoc(), name, dist::Phase::Gather, stage, std::nullopt);
  once.getBody().emplaceBlock();
  symbols.insert(once);
  symbols.getOp()->walk([&](dist::ProgramOp program) {
    if (llvm::none_of(program.getOps<dist::CallOp>(),
                      [&](dist::CallOp call) { return call.getFragment() == forward.getSymName(); }))
      return;
    builder.setInsertionPointToStart(&program.getBody().front());
    dist::CallOp::create(builder, program.getLoc(), once.getSymName(), 0);
  });
  return once;
}
