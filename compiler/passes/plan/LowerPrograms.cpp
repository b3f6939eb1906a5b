//===- LowerPrograms.cpp - programs of calls ----------------------------------===//
#include "compiler/passes/plan/LowerPrograms.h"

#include "compiler/analysis/TrainStep.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ds;

/// Whether a kernel reads or writes a variable.
static bool uses(dist::KernelOp kernel, StringAttr variable, bool dist::KernelOp::Operand::*how) {
  return llvm::any_of(kernel.getOperandsOfKernel(), [&](const dist::KernelOp::Operand &operand) {
    return operand.variable == variable && operand.*how;
  });
}

/// Whether something lies between the members of a bucket, which is zero.
bool LowerPrograms::isPadded(dist::BucketOp bucket) const {
  int64_t elements = 0;
  for (auto member : bucket.getMembers().getAsRange<FlatSymbolRefAttr>())
    elements += symbols_.lookup<train::VariableOp>(member.getValue()).getTensorType().getNumElements();
  return elements != bucket.getWholeType().getNumElements();
}

/// State of the step that an op adds to.
SmallVector<StringAttr> LowerPrograms::accumulatedBy(Operation *op) const {
  SmallVector<StringAttr> names;
  if (auto kernel = dyn_cast<dist::KernelOp>(op))
    for (const dist::KernelOp::Operand &operand : kernel.getOperandsOfKernel())
      if (operand.variable && operand.writes && storage_.isOfStep(operand.variable) &&
          uses(kernel, operand.variable, &dist::KernelOp::Operand::reads))
        names.push_back(operand.variable);
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op); collective && collective.getAccumulate())
    for (auto name : collective.getIntoAttr().getAsRange<FlatSymbolRefAttr>())
      names.push_back(name.getAttr());
  return names;
}

void LowerPrograms::lower(dist::ProgramOp program) {
  Location location = program.getLoc();
  buffers_.setInsertionPointToEnd(&plan_.getBody().front());
  const std::string begin = ("begin_" + program.getSymName()).str();
  const bool hasBegin = lowerBegin(program, begin);
  auto lowered = plan::ProgramOp::create(buffers_, location, program.getSymName());
  OpBuilder builder(buffers_.getContext());
  builder.setInsertionPointToStart(&lowered.getBody().emplaceBlock());
  if (hasBegin)
    plan::CallOp::create(builder, location, begin, 0);
  llvm::DenseSet<StringAttr> written;
  for (auto call : program.getOps<dist::CallOp>()) {
    plan::CallOp::create(builder, location, call.getFragment(), call.getMicrobatch());
    symbols_.lookup<dist::FragmentOp>(call.getFragment()).walk([&](Operation *op) {
      for (StringAttr name : accumulatedBy(op))
        written.insert(name);
      if (auto store = dyn_cast<train::StoreOp>(op))
        written.insert(store.getVariableAttr().getAttr());
    });
  }
  for (StringRef name :
       {lossMetric, gradientNormMetric, learningRateMetric, lossScaleMetric, skippedMetric, targetsMetric})
    if (auto variable = symbols_.lookup<train::VariableOp>(name);
        variable && written.contains(variable.getSymNameAttr()))
      plan::MetricOp::create(builder, location, builder.getStringAttr(name),
                             storage_.ofState(variable.getSymNameAttr()).buffer, TypeAttr::get(variable.getType()));
}

/// Zeroes what the program's fragments accumulate into, and what lies between what they store; false where there is
/// nothing.
bool LowerPrograms::lowerBegin(dist::ProgramOp program, StringRef name) {
  llvm::SetVector<StringAttr> accumulators;
  llvm::SetVector<dist::FragmentOp> fragments;
  for (auto call : program.getOps<dist::CallOp>())
    fragments.insert(symbols_.lookup<dist::FragmentOp>(call.getFragment()));
  for (dist::FragmentOp fragment : fragments)
    for (Operation &op : fragment.getBody().front())
      for (StringAttr name : accumulatedBy(&op)) {
        dist::BucketOp bucket = storage_.bucketOf(name);
        accumulators.insert(bucket ? bucket.getSymNameAttr() : name);
      }
  for (dist::FragmentOp fragment : fragments)
    for (auto store : fragment.getOps<train::StoreOp>()) {
      const StringAttr name = store.getVariableAttr().getAttr();
      if (dist::BucketOp bucket = storage_.bucketOf(name); bucket && storage_.isOfStep(name) && isPadded(bucket))
        accumulators.insert(bucket.getSymNameAttr());
    }
  if (accumulators.empty())
    return false;
  auto routine = plan::RoutineOp::create(buffers_, program.getLoc(), buffers_.getStringAttr(name), plan::Phase::Begin,
                                         IntegerAttr());
  buffers_.setInsertionPoint(routine);
  writer_.beginRoutine(routine);
  for (StringAttr accumulator : accumulators) {
    auto bucket = symbols_.lookup<dist::BucketOp>(accumulator);
    auto held = cast<RankedTensorType>(
        bucket && !bucket.isSharded() ? bucket.getType()
                                      : cast<train::StateOpInterface>(symbols_.lookup(accumulator)).getStateType());
    writer_.fill(bucket ? storage_.ofWhole(bucket) : storage_.ofState(accumulator), held, program.getLoc());
  }
  buffers_.setInsertionPointToEnd(&plan_.getBody().front());
  return true;
}
