//===- CommandWriter.cpp - commands of a routine, all on the compute queue -------===//
#include "compiler/passes/plan/CommandWriter.h"

#include "compiler/analysis/TrainStep.h"
#include "dialects/Dist/Mesh.h"

using namespace mlir;
using namespace ds;

void CommandOperands::add(const BufferView &view, plan::Access access, Type type) {
  buffers.push_back(view.buffer);
  accesses.push_back(int32_t(access));
  types.push_back(TypeAttr::get(type));
  offsets.push_back(view.offset);
  strides.push_back(view.rankStride);
}

void CommandWriter::beginRoutine(plan::RoutineOp routine) {
  builder_.setInsertionPointToStart(&routine.getBody().emplaceBlock());
}

static bool isStrided(const CommandOperands &operands) {
  return llvm::any_of(operands.strides, [](int64_t stride) { return stride != 0; });
}

/// A command of any kind: what all have, then what is its own.
template <typename CommandOp, typename... Extra>
CommandOp CommandWriter::write(Location location, TypeRange results, const CommandOperands &operands,
                               FlatSymbolRefAttr communicator, DenseI64ArrayAttr reference, Extra... extra) {
  const ArrayRef<int64_t> strides = isStrided(operands) ? ArrayRef<int64_t>(operands.strides) : ArrayRef<int64_t>();
  const ArrayAttr nothing = builder_.getArrayAttr({});
  return CommandOp::create(
      builder_, location, results, operands.buffers, builder_.getDenseI32ArrayAttr(operands.accesses),
      builder_.getArrayAttr(operands.types), builder_.getDenseI64ArrayAttr(operands.offsets),
      FlatSymbolRefAttr::get(builder_.getContext(), "compute"), nothing, builder_.getDenseI64ArrayAttr({}), nothing,
      reference, builder_.getDenseI64ArrayAttr(strides), communicator, extra...);
}

static DenseI64ArrayAttr referenceOf(Operation *op) {
  auto reference = op->getAttrOfType<DenseI64ArrayAttr>(referenceAttribute);
  return reference ? reference : DenseI64ArrayAttr::get(op->getContext(), {});
}

void CommandWriter::kernel(StringAttr kernel, DictionaryAttr arguments, const CommandOperands &operands,
                           Operation *op) {
  for (NamedAttribute argument : arguments)
    if (auto byRank = dyn_cast<dist::ByRankAttr>(argument.getValue()))
      (void)communicator(byRank.getAxis());
  write<plan::KernelOp>(op->getLoc(), {}, operands, communicatorOf(operands), referenceOf(op), kernel, arguments,
                        FlatSymbolRefAttr());
}

void CommandWriter::fill(const BufferView &view, RankedTensorType type, Location location) {
  CommandOperands operands;
  operands.add(view, plan::Access::Write, type);
  write<plan::FillOp>(location, {}, operands, communicatorOf(operands), builder_.getDenseI64ArrayAttr({}));
}

void CommandWriter::copy(const BufferView &source, const BufferView &target, Type type, Location location) {
  CommandOperands operands;
  operands.add(source, plan::Access::Read, type);
  operands.add(target, plan::Access::Write, type);
  write<plan::CopyOp>(location, {}, operands, communicatorOf(operands), builder_.getDenseI64ArrayAttr({}));
}

void CommandWriter::feed(StringAttr input, const BufferView &view, Type type, Location location) {
  CommandOperands operands;
  operands.add(view, plan::Access::Write, type);
  write<plan::FeedOp>(location, {}, operands, communicatorOf(operands), builder_.getDenseI64ArrayAttr({}), input);
}

void CommandWriter::receive(dist::ReceiveOp op, const CommandOperands &operands) {
  write<plan::ReceiveOp>(op.getLoc(), {}, operands, communicatorOf(operands), builder_.getDenseI64ArrayAttr({}),
                         op.getChannelAttr());
}

void CommandWriter::send(dist::SendOp op, const CommandOperands &operands) {
  write<plan::SendOp>(op.getLoc(), {}, operands, communicatorOf(operands), builder_.getDenseI64ArrayAttr({}),
                      op.getChannelAttr());
}

Value CommandWriter::collective(dist::CollectiveOpInterface op, const CommandOperands &operands) {
  auto kind = plan::CollectiveKindAttr::get(builder_.getContext(), plan::CollectiveKind(op.getKind()));
  SmallVector<Type> token;
  if (op->getNumResults() == 1 && isa<dist::TokenType>(op->getResult(0).getType()))
    token.push_back(plan::TokenType::get(builder_.getContext()));
  auto command =
      write<plan::CollectiveOp>(op->getLoc(), token, operands, communicator(op.getAxisAttr()), referenceOf(op), kind,
                                op.getAccumulate() ? builder_.getUnitAttr() : UnitAttr());
  return command.getToken();
}

void CommandWriter::await(Value token, Location location) { plan::AwaitOp::create(builder_, location, token); }

//===-- slices -----------------------------------------------------------------------===//

/// Slices are of the data axis.
FlatSymbolRefAttr CommandWriter::communicatorOf(const CommandOperands &operands) {
  return isStrided(operands) ? communicator(builder_.getStringAttr(dist::dataAxis)) : FlatSymbolRefAttr();
}

FlatSymbolRefAttr CommandWriter::communicator(StringAttr axis) {
  FlatSymbolRefAttr &known = communicators_[axis];
  if (known)
    return known;
  auto module = role_->getParentOfType<ModuleOp>();
  dist::MeshOp mesh = dist::meshOf(module);
  const int64_t index = *dist::axisIndex(mesh, axis);
  for (auto made : module.getOps<plan::CommunicatorOp>())
    if (made.getAxes() == ArrayRef(index)) // by an earlier role
      return known = FlatSymbolRefAttr::get(made.getSymNameAttr());
  OpBuilder builder(role_);
  auto made = plan::CommunicatorOp::create(builder, mesh.getLoc(), (axis.getValue() + "_ranks").str(), {index});
  return known = FlatSymbolRefAttr::get(symbols_.insert(made));
}
