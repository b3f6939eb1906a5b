//===- CommandWriter.cpp - commands of a routine, and the order of its queues ----===//
#include "compiler/passes/plan/CommandWriter.h"

#include "compiler/analysis/TrainStep.h"
#include "dialects/Dist/Mesh.h"

using namespace mlir;
using namespace ds;

void CommandParts::add(const Place &place, plan::Access access, Type type) {
  buffers.push_back(place.buffer);
  accesses.push_back(int32_t(access));
  types.push_back(TypeAttr::get(type));
  offsets.push_back(place.offset);
  strides.push_back(place.rankStride);
}

void CommandWriter::beginRoutine(plan::RoutineOp routine) {
  builder_.setInsertionPointToStart(&routine.getBody().emplaceBlock());
  ready_.clear();
  last_ = nullptr;
}

void CommandWriter::endRoutine(plan::RoutineOp routine) {
  if (!due_.empty())
    join(routine.getLoc());
}

//===-- the order of two queues ----------------------------------------------------===//

/// `command` was put on the compute queue; it waits for the collectives that are due.
void CommandWriter::onCompute(Operation *command) {
  for (const Beside &due : due_)
    addWait(command, due.event);
  due_.clear();
  last_ = command;
}

/// Whether two commands use a buffer that one of them writes.
static bool conflict(Operation *a, Operation *b) {
  const auto uses = [](Operation *command) {
    return llvm::zip(command->getOperands(), command->getAttrOfType<DenseI32ArrayAttr>("accesses").asArrayRef());
  };
  for (auto [buffer, access] : uses(a))
    for (auto [other, otherAccess] : uses(b))
      if (buffer == other && (access != int32_t(plan::Access::Read) || otherAccess != int32_t(plan::Access::Read)))
        return true;
  return false;
}

/// `command` runs beside compute, too: no compute command that has waited for what is due stands between.
void CommandWriter::awaitDue(Operation *command) {
  for (const Beside &due : due_)
    if (due.command->getAttr("queue") != command->getAttr("queue") && conflict(due.command, command))
      addWait(command, due.event);
}

void CommandWriter::addWait(Operation *command, StringRef event, int64_t delay) {
  auto waits = llvm::to_vector(command->getAttrOfType<ArrayAttr>("waits"));
  auto delays = llvm::to_vector(command->getAttrOfType<DenseI64ArrayAttr>("delays").asArrayRef());
  waits.push_back(name(event));
  delays.push_back(delay);
  command->setAttr("waits", builder_.getArrayAttr(waits));
  command->setAttr("delays", builder_.getDenseI64ArrayAttr(delays));
}

void CommandWriter::addSignal(Operation *command, StringRef event) {
  auto signals = llvm::to_vector(command->getAttrOfType<ArrayAttr>("signals"));
  signals.push_back(name(event));
  command->setAttr("signals", builder_.getArrayAttr(signals));
}

std::string CommandWriter::makeEvent(StringRef kind) {
  std::string event = (kind + "_" + std::to_string(events_++)).str();
  plan::EventOp::create(members_, role_.getLoc(), event);
  return event;
}

/// A command of the compute queue that only waits and signals: it fills nothing.
void CommandWriter::join(Location location) {
  Value empty = placement_.make("join", 0, plan::Scope::Call, plan::Category::Workspace);
  fill({empty, 0, 0}, RankedTensorType::get({0}, builder_.getIntegerType(8)), location);
}

std::string CommandWriter::readySignal(Location location) {
  if (!last_)
    join(location);
  std::string &ready = ready_[last_];
  if (ready.empty()) {
    ready = makeEvent("ready");
    addSignal(last_, ready);
  }
  return ready;
}

void CommandWriter::start(dist::CollectiveOpInterface op, const CommandParts &parts) {
  const std::string ready = readySignal(op.getLoc());
  Operation *command = writeCollective(op, parts, "collective");
  addWait(command, ready);
  awaitDue(command);
  const std::string done = makeEvent("done");
  addSignal(command, done);
  done_[op->getResult(0)] = {done, command};
}

void CommandWriter::done(Value token) { due_.push_back(done_.lookup(token)); }

//===-- commands ---------------------------------------------------------------------===//

static DenseI64ArrayAttr referenceOf(Operation *op) {
  auto reference = op->getAttrOfType<DenseI64ArrayAttr>(referenceAttribute);
  return reference ? reference : DenseI64ArrayAttr::get(op->getContext(), {});
}

void CommandWriter::kernel(const KernelCall &call, const CommandParts &parts, Operation *op) {
  onCompute(plan::KernelOp::create(builder_, op->getLoc(), parts.buffers, builder_.getDenseI32ArrayAttr(parts.accesses),
                                   builder_.getArrayAttr(parts.types), builder_.getDenseI64ArrayAttr(parts.offsets),
                                   name("compute"), nothing(), noNumbers(), nothing(), referenceOf(op),
                                   stridesOf(parts), communicatorOf(parts), builder_.getStringAttr(call.kernel),
                                   builder_.getDictionaryAttr(call.attributes)));
}

void CommandWriter::fill(const Place &place, RankedTensorType type, Location location) {
  CommandParts parts;
  parts.add(place, plan::Access::Write, type);
  onCompute(plan::FillOp::create(builder_, location, parts.buffers, builder_.getDenseI32ArrayAttr(parts.accesses),
                                 builder_.getArrayAttr(parts.types), builder_.getDenseI64ArrayAttr(parts.offsets),
                                 name("compute"), nothing(), noNumbers(), nothing(), noNumbers(), stridesOf(parts),
                                 communicatorOf(parts)));
}

void CommandWriter::copy(const Place &source, const Place &target, Type type, Location location) {
  CommandParts parts;
  parts.add(source, plan::Access::Read, type);
  parts.add(target, plan::Access::Write, type);
  onCompute(plan::CopyOp::create(builder_, location, parts.buffers, builder_.getDenseI32ArrayAttr(parts.accesses),
                                 builder_.getArrayAttr(parts.types), builder_.getDenseI64ArrayAttr(parts.offsets),
                                 name("compute"), nothing(), noNumbers(), nothing(), noNumbers(), stridesOf(parts),
                                 communicatorOf(parts)));
}

void CommandWriter::feed(StringRef input, const Place &place, Type type, const Arrival &arrival, Location location) {
  CommandParts parts;
  parts.add(place, plan::Access::Write, type);
  plan::FeedOp::create(builder_, location, parts.buffers, builder_.getDenseI32ArrayAttr(parts.accesses),
                       builder_.getArrayAttr(parts.types), builder_.getDenseI64ArrayAttr(parts.offsets),
                       name("copy_in"), waitsFor(arrival), delaysOf(arrival), nothing(), noNumbers(), stridesOf(parts),
                       communicatorOf(parts), builder_.getStringAttr(input));
}

/// What no step reads needs no slot to be free.
ArrayAttr CommandWriter::waitsFor(const Arrival &arrival) {
  return arrival.lastReader ? builder_.getArrayAttr({name(arrival.freed)}) : nothing();
}
DenseI64ArrayAttr CommandWriter::delaysOf(const Arrival &arrival) {
  return arrival.lastReader ? builder_.getDenseI64ArrayAttr({arrival.delay}) : noNumbers();
}

void CommandWriter::receive(dist::ReceiveOp op, const CommandParts &parts, const Arrival &arrival) {
  plan::ReceiveOp::create(builder_, op.getLoc(), parts.buffers, builder_.getDenseI32ArrayAttr(parts.accesses),
                          builder_.getArrayAttr(parts.types), builder_.getDenseI64ArrayAttr(parts.offsets),
                          op.getChannelAttr(), waitsFor(arrival), delaysOf(arrival),
                          builder_.getArrayAttr({name(arrival.ready)}), noNumbers(), stridesOf(parts),
                          communicatorOf(parts), op.getChannelAttr());
}

void CommandWriter::send(dist::SendOp op, const CommandParts &parts, const Departure &departure,
                         ArrayRef<std::string> before) {
  const std::string ready = readySignal(op.getLoc());
  Operation *command =
      plan::SendOp::create(builder_, op.getLoc(), parts.buffers, builder_.getDenseI32ArrayAttr(parts.accesses),
                           builder_.getArrayAttr(parts.types), builder_.getDenseI64ArrayAttr(parts.offsets),
                           op.getChannelAttr(), builder_.getArrayAttr({name(ready)}),
                           builder_.getDenseI64ArrayAttr({0}), builder_.getArrayAttr({name(departure.sent)}),
                           noNumbers(), stridesOf(parts), communicatorOf(parts), op.getChannelAttr());
  for (const std::string &event : before)
    addWait(command, event);
  awaitDue(command);
  if (departure.values.empty())
    due_.push_back({departure.sent, command});
}

void CommandWriter::collective(dist::CollectiveOpInterface op, const CommandParts &parts) {
  onCompute(writeCollective(op, parts, "compute"));
}

Operation *CommandWriter::writeCollective(dist::CollectiveOpInterface op, const CommandParts &parts, StringRef queue) {
  auto kind = plan::CollectiveKindAttr::get(builder_.getContext(), plan::CollectiveKind(op.getKind()));
  return plan::CollectiveOp::create(builder_, op->getLoc(), parts.buffers,
                                    builder_.getDenseI32ArrayAttr(parts.accesses), builder_.getArrayAttr(parts.types),
                                    builder_.getDenseI64ArrayAttr(parts.offsets), name(queue), nothing(), noNumbers(),
                                    nothing(), referenceOf(op), stridesOf(parts), communicator(op.getAxisAttr()), kind,
                                    op.getAccumulate() ? builder_.getUnitAttr() : UnitAttr());
}

//===-- slices -----------------------------------------------------------------------===//

static bool isStrided(const CommandParts &parts) {
  return llvm::any_of(parts.strides, [](int64_t stride) { return stride != 0; });
}

DenseI64ArrayAttr CommandWriter::stridesOf(const CommandParts &parts) {
  return isStrided(parts) ? builder_.getDenseI64ArrayAttr(parts.strides) : noNumbers();
}

/// Slices are of the data axis.
FlatSymbolRefAttr CommandWriter::communicatorOf(const CommandParts &parts) {
  return isStrided(parts) ? communicator(builder_.getStringAttr(dist::dataAxis)) : FlatSymbolRefAttr();
}

/// The ranks along an axis; made at the first use.
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
