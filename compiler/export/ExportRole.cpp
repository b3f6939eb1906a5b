//===- ExportRole.cpp - arenas, buffers, routines, programs of a role -------===//
#include "compiler/export/Exporter.h"
#include "compiler/export/Fields.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ds;
using namespace ds::exporting;
namespace proto = ds::plan::proto;

/// The buffer whose contents a `next` one takes over.
static Operation *heldBefore(plan::BufferOp next) {
  for (auto other : cast<plan::RoleOp>(next->getParentOp()).getOps<plan::BufferOp>())
    if (!other.getNext() && other.getVariableAttr() == next.getVariableAttr())
      return other;
  return nullptr;
}

void Exporter::exportBuffer(plan::BufferOp buffer, proto::Buffer &message) {
  message.set_name(buffer.getName().str());
  message.set_arena(members_.lookup(symbols_.lookupNearestSymbolFrom(buffer, buffer.getArenaAttr())));
  message.set_offset(*buffer.getOffset());
  message.set_bytes(buffer.getBytes());
  message.set_scope(proto::Buffer::Scope(buffer.getScope()));
  message.set_category(proto::Buffer::Category(buffer.getCategory()));
  message.set_slots(buffer.getSlots());
  if (auto offsets = buffer.getSlotOffsets())
    message.mutable_slot_offsets()->Assign(offsets->begin(), offsets->end());
  if (buffer.getNext())
    return message.set_next_of(members_.lookup(heldBefore(buffer)));
  if (auto holds = buffer.getVariableAttr()) {
    if (auto variable = variables_.find(holds.getAttr()); variable != variables_.end())
      message.set_variable(variable->second);
    else
      message.set_bucket(buckets_.lookup(holds.getAttr()));
  }
  if (auto lives = buffer.getLives())
    for (size_t i = 0; i + 5 <= lives->size(); i += 5) {
      proto::Life &life = *message.add_lives();
      life.set_program((*lives)[i]);
      life.set_birth_routine((*lives)[i + 1]);
      life.set_birth_command((*lives)[i + 2]);
      life.set_death_routine((*lives)[i + 3]);
      life.set_death_command((*lives)[i + 4]);
    }
}

void Exporter::exportOperand(plan::CommandOpInterface op, unsigned index, proto::Operand &message) {
  message.set_buffer(members_.lookup(op.getBuffers()[index].getDefiningOp()));
  message.set_byte_offset(op.getByteOffsets()[index]);
  exportType(op.getTensor(index), message);
  message.set_access(proto::Operand::Access(op.getAccess(index)));
  if (const int64_t stride = op.getRankStride(index)) {
    message.set_rank_stride(stride);
    message.set_communicator(communicators_.lookup(op.getCommunicatorAttr().getAttr()));
  }
}

void Exporter::exportScalar(Value buffer, Type type, proto::Operand &message) {
  message.set_buffer(members_.lookup(buffer.getDefiningOp()));
  exportType(type, message);
  message.set_access(proto::Operand::READ);
}

void Exporter::exportCommandBase(plan::CommandOpInterface op, proto::Command &message) {
  auto number = [&](Attribute name) {
    return members_.lookup(symbols_.lookupNearestSymbolFrom(op, cast<FlatSymbolRefAttr>(name)));
  };
  message.set_queue(number(op.getQueueAttr()));
  for (auto [event, delay] : llvm::zip(op.getWaits(), op.getDelays())) {
    proto::Wait &wait = *message.add_waits();
    wait.set_event(number(event));
    wait.set_delay(delay);
  }
  for (Attribute event : op.getSignals())
    message.add_signals(number(event));
  for (int64_t reference : op.getReference())
    message.add_reference(reference);
}

bool Exporter::exportArgument(NamedAttribute attribute, proto::Attribute &message) {
  auto byRank = dyn_cast<dist::ByRankAttr>(attribute.getValue());
  if (!byRank)
    return exportAttribute(attribute, message);
  message.set_name(attribute.getName().str());
  proto::Integers &integers = *message.mutable_integers();
  integers.mutable_values()->Assign(byRank.getValues().begin(), byRank.getValues().end());
  proto::RankSteps &steps = *integers.add_rank_steps();
  steps.set_communicator(alongAxis_.lookup(byRank.getAxis()));
  steps.mutable_values()->Assign(byRank.getSteps().begin(), byRank.getSteps().end());
  return true;
}

LogicalResult Exporter::exportCommand(Operation &op, proto::Command &message) {
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](plan::KernelOp kernel) -> LogicalResult {
        exportCommandBase(kernel, message);
        message.mutable_kernel()->set_kernel(kernel.getKernel().str());
        if (kernel.getCodeAttr())
          message.mutable_kernel()->set_code(codes_.lookup(kernel.getCodeAttr().getAttr()));
        for (unsigned i = 0; i < kernel.getBuffers().size(); ++i)
          exportOperand(kernel, i, *message.mutable_kernel()->add_operands());
        for (NamedAttribute attribute : kernel.getArguments())
          if (!exportArgument(attribute, *message.mutable_kernel()->add_attributes()))
            return kernel.emitOpError() << "argument " << attribute.getName() << " has no field in a plan";
        return success();
      })
      .Case([&](plan::FillOp fill) {
        exportCommandBase(fill, message);
        exportOperand(fill, 0, *message.mutable_fill()->mutable_target());
        return success();
      })
      .Case([&](plan::CopyOp copy) {
        exportCommandBase(copy, message);
        exportOperand(copy, 0, *message.mutable_copy()->mutable_source());
        exportOperand(copy, 1, *message.mutable_copy()->mutable_target());
        return success();
      })
      .Case([&](plan::CollectiveOp collective) {
        exportCommandBase(collective, message);
        proto::CollectiveCommand &field = *message.mutable_collective();
        field.set_kind(proto::CollectiveCommand::Kind(collective.getKind()));
        field.set_communicator(communicators_.lookup(collective.getCommunicatorAttr().getAttr()));
        for (unsigned i = 0; i < collective.getBuffers().size(); i += collective.partSize()) {
          proto::CollectivePart &part = *field.add_parts();
          exportOperand(collective, i, *part.mutable_source());
          exportOperand(collective, i + 1, *part.mutable_target());
          part.set_accumulate(collective.getAccumulate());
          if (collective.partSize() > 2)
            exportOperand(collective, i + 2, *part.mutable_scratch());
        }
        return success();
      })
      .Case([&](plan::SendOp send) {
        exportCommandBase(send, message);
        message.mutable_send()->set_channel(channels_.lookup(send.getChannelAttr().getAttr()));
        for (unsigned i = 0; i < send.getBuffers().size(); ++i)
          exportOperand(send, i, *message.mutable_send()->add_sources());
        return success();
      })
      .Case([&](plan::ReceiveOp receive) {
        exportCommandBase(receive, message);
        message.mutable_receive()->set_channel(channels_.lookup(receive.getChannelAttr().getAttr()));
        for (unsigned i = 0; i < receive.getBuffers().size(); ++i)
          exportOperand(receive, i, *message.mutable_receive()->add_targets());
        return success();
      })
      .Case([&](plan::FeedOp feed) {
        exportCommandBase(feed, message);
        message.mutable_feed()->set_input(inputs_.lookup(feed.getInputAttr()));
        exportOperand(feed, 0, *message.mutable_feed()->mutable_target());
        return success();
      })
      .Default([](Operation *other) { return other->emitOpError("is not a command"); });
}

LogicalResult Exporter::exportRole(plan::RoleOp role) {
  proto::Role &message = *plan_.add_roles();
  message.set_name(role.getSymName().str());
  for (int64_t rank : role.getRanks())
    message.add_ranks(rank);
  for (auto arena : role.getOps<plan::ArenaOp>()) {
    members_[arena] = message.arenas_size();
    proto::Arena &field = *message.add_arenas();
    field.set_space(stringifyMemorySpace(arena.getSpace()).str());
    field.set_bytes(*arena.getBytes());
    field.set_peak_live_bytes(*arena.getPeakLiveBytes());
  }
  for (auto queue : role.getOps<plan::QueueOp>()) {
    members_[queue] = message.queues_size();
    message.add_queues()->set_name(queue.getSymName().str());
    message.mutable_queues()->rbegin()->set_kind(proto::Queue::Kind(queue.getKind()));
  }
  for (auto event : role.getOps<plan::EventOp>()) {
    members_[event] = message.events_size();
    message.add_events()->set_name(event.getSymName().str());
  }
  for (auto buffer : role.getOps<plan::BufferOp>()) {
    members_[buffer] = message.buffers_size();
    exportBuffer(buffer, *message.add_buffers());
  }
  for (auto routine : role.getOps<plan::RoutineOp>()) {
    members_[routine] = message.routines_size();
    proto::Routine &field = *message.add_routines();
    field.set_name(routine.getSymName().str());
    field.set_phase(proto::Routine::Phase(routine.getPhase()));
    if (routine.getStage())
      field.set_stage(*routine.getStage());
    for (Operation &op : routine.getBody().front())
      if (failed(exportCommand(op, *field.add_commands())))
        return failure();
  }
  for (auto program : role.getOps<plan::ProgramOp>()) {
    proto::Program &field = *message.add_programs();
    field.set_name(program.getName().str());
    field.set_captured(program.getCaptured());
    for (auto call : program.getOps<plan::CallOp>()) {
      proto::Call &item = *field.add_calls();
      item.set_routine(members_.lookup(symbols_.lookupNearestSymbolFrom(call, call.getRoutineAttr())));
      item.set_microbatch(call.getMicrobatch());
    }
    for (auto tail : program.getOps<plan::TailOp>()) {
      proto::Tail &item = *field.mutable_tail();
      item.set_first_call(uint32_t(program.getCallsBeforeTail().size()));
      exportScalar(tail.getUnlessOne(), tail.getType(), *item.mutable_unless_one());
    }
    for (auto metric : program.getOps<plan::MetricOp>()) {
      proto::Metric &item = *field.add_metrics();
      item.set_name(metric.getName().str());
      exportScalar(metric.getBuffer(), metric.getType(), *item.mutable_source());
    }
  }
  return success();
}
