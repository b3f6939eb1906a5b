//===- SpeculativeUpdates.cpp - updates that do not wait for the norm -----===//
#include "compiler/passes/offload/SpeculativeUpdates.h"

#include "compiler/passes/offload/OperandCopies.h"
#include "dialects/Train/Train.h"
#include "kernels/KernelTable.h"

#include <optional>

using namespace mlir;
using namespace ds;

namespace {

constexpr StringLiteral tailName = "redo", oneName = "constant::one";
constexpr unsigned parameter = unsigned(kernels::KernelRow::parameter);

/// The operand of an update by which its gradient is multiplied. Scalars stand behind what is as large as the
/// parameter.
std::optional<unsigned> factorOperand(plan::CommandOpInterface update) {
  const kernels::KernelRow *row = kernels::findKernel(cast<plan::KernelOp>(update.getOperation()).getKernel());
  unsigned scalar = 0;
  while (scalar < update.getBuffers().size() && update.getTensor(scalar).getRank() > 0)
    ++scalar;
  const unsigned index = row && row->isOptimizer() ? scalar + unsigned(row->clip()) : ~0U;
  return index < update.getBuffers().size() ? std::optional(index) : std::nullopt;
}

/// Whether a command reads or writes what an update writes.
bool needsResult(plan::CommandOpInterface other, plan::CommandOpInterface update) {
  for (auto [index, buffer] : llvm::enumerate(update.getBuffers()))
    for (auto [theirs, operand] : llvm::enumerate(other.getBuffers())) {
      const auto [begin, end] = update.getByteRange(unsigned(index));
      const auto [otherBegin, otherEnd] = other.getByteRange(unsigned(theirs));
      if (update.writes(unsigned(index)) && buffer == operand && begin < otherEnd && otherBegin < end)
        return true;
    }
  return false;
}

} // namespace

bool SpeculativeUpdates::guess(plan::CommandOpInterface update) {
  const std::optional<unsigned> index = factorOperand(update);
  if (!index || update.getByteOffsets()[*index] != 0)
    return false;
  const Value factor = update.getBuffers()[*index];
  if (factor.getDefiningOp<plan::BufferOp>().getScope() == plan::Scope::Plan || (factor_ && factor != factor_))
    return false;
  for (auto other : update_.getOps<plan::CommandOpInterface>())
    if (other != update && needsResult(other, update))
      return false;
  factor_ = factor;
  setOperand(update, *index, {one()});
  return true;
}

void SpeculativeUpdates::takeBack(plan::CommandOpInterface update) {
  setOperand(update, *factorOperand(update), {factor_});
}

void SpeculativeUpdates::keep(plan::CommandOpInterface update, Operation *ahead, Operation *scalars) {
  makeArena(role_, plan::MemorySpace::Host);
  for (unsigned index = 0; index < update.getBuffers().size(); ++index)
    if (update.getTensor(index).getRank() == 0)
      setOperand(update, index, {hostScalar(update, index, scalars)});
  const TensorPlace place = placeOf(update, parameter);
  makeAgain(update, keepParameter(update, ahead), place);
}

Value SpeculativeUpdates::keepParameter(plan::CommandOpInterface update, Operation *ahead) {
  const RankedTensorType type = update.getTensor(parameter);
  const TensorPlace place = placeOf(update, parameter);
  const Value kept = makeCopy(update, plan::Scope::Step);
  OpBuilder before(ahead), after(update->getContext());
  copyTensor(before, update, type, place, {kept});
  if (spaceOf(place.buffer) == plan::MemorySpace::Host)
    return kept;
  const Value updated = makeCopy(update, plan::Scope::Call);
  copyTensor(before, update, type, {kept}, {updated});
  setOperand(update, parameter, {updated});
  after.setInsertionPointAfter(update);
  copyTensor(after, update, type, {updated}, place);
  return kept;
}

void SpeculativeUpdates::makeAgain(plan::CommandOpInterface update, Value kept, const TensorPlace &place) {
  OpBuilder builder = OpBuilder::atBlockEnd(&tail().getBody().front());
  auto again = cast<plan::CommandOpInterface>(builder.clone(*update));
  setOperand(again, parameter, {kept});
  setOperand(again, *factorOperand(again), {factor_});
  copyTensor(builder, again, again.getTensor(parameter), {kept}, place);
}

Value SpeculativeUpdates::makeCopy(plan::CommandOpInterface update, plan::Scope scope) {
  auto name = update.getBuffers()[parameter].getDefiningOp<plan::BufferOp>().getName();
  return plan::BufferOp::create(members_, update->getLoc(), name, plan::MemorySpace::Host,
                                plan::tensorBytes(update.getTensor(parameter)), scope, plan::Category::Weights);
}

Value SpeculativeUpdates::hostScalar(plan::CommandOpInterface update, unsigned index, Operation *before) {
  const TensorPlace place = placeOf(update, index);
  Value &host = scalars_[{place.buffer, place.offset}];
  if (!host) {
    auto buffer = place.buffer.getDefiningOp<plan::BufferOp>();
    host = plan::BufferOp::create(members_, buffer.getLoc(), buffer.getName(), plan::MemorySpace::Host,
                                  plan::tensorBytes(update.getTensor(index)), plan::Scope::Step,
                                  plan::Category::Communication);
    OpBuilder builder(before);
    copyTensor(builder, update, update.getTensor(index), place, {host});
  }
  return host;
}

Value SpeculativeUpdates::one() {
  if (one_)
    return one_;
  MLIRContext *context = role_.getContext();
  auto module = role_->getParentOfType<ModuleOp>();
  const auto type = RankedTensorType::get({}, Float64Type::get(context));
  if (!module.lookupSymbol(oneName)) {
    OpBuilder builder(role_);
    const auto value = DenseElementsAttr::get(type, 1.0);
    train::VariableOp::create(builder, role_.getLoc(), train::VariableKind::Constant, oneName, type,
                              train::LiteralSourceAttr::get(context, value));
  }
  return one_ = plan::BufferOp::create(members_, role_.getLoc(), oneName, plan::MemorySpace::Device,
                                       plan::tensorBytes(type), plan::Scope::Plan, plan::Category::Constants,
                                       FlatSymbolRefAttr::get(context, oneName));
}

plan::RoutineOp SpeculativeUpdates::tail() {
  if (tail_)
    return tail_;
  OpBuilder builder(role_.getContext());
  builder.setInsertionPointAfter(update_);
  tail_ = plan::RoutineOp::create(builder, update_.getLoc(), builder.getStringAttr(tailName), plan::Phase::Update,
                                  IntegerAttr());
  tail_.getBody().emplaceBlock();
  auto buffer = factor_.getDefiningOp<plan::BufferOp>();
  if (buffer.getScope() == plan::Scope::Call) // read when the update has ended
    buffer.setScope(plan::Scope::Step);
  for (auto program : role_.getOps<plan::ProgramOp>())
    if (program.getName() == "step") {
      auto calls = llvm::to_vector(program.getOps<plan::CallOp>());
      builder.setInsertionPointAfter(calls.back());
      const auto type = RankedTensorType::get({}, Float64Type::get(role_.getContext()));
      plan::TailOp::create(builder, role_.getLoc(), factor_, TypeAttr::get(type));
      plan::CallOp::create(builder, role_.getLoc(), tailName, calls.back().getMicrobatch());
    }
  return tail_;
}
