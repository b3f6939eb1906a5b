//===- InFlight.cpp - how many micro-batches of a value a role holds ----------===//
#include "compiler/analysis/InFlight.h"

#include <limits>

using namespace mlir;
using namespace ds;

InFlight::InFlight(plan::RoleOp role) {
  for (auto routine : role.getOps<plan::RoutineOp>()) {
    routines_[routine.getSymNameAttr()] = routine;
    noteRoutine(routine);
  }
  for (auto program : role.getOps<plan::ProgramOp>())
    countSlots(program);
  for (auto &[op, arrival] : arrivals_) {
    for (Operation *buffer : arrival.buffers)
      arrival.slots = std::max(arrival.slots, slots(buffer));
    for (Operation *buffer : arrival.buffers) // one event frees all of them
      slots_[buffer] = arrival.slots;
    arrival.delay = arrival.slots;
  }
  for (auto program : role.getOps<plan::ProgramOp>())
    if (program.getName() == "step") {
      noteLastReaders(program);
      delayReceives(program);
    }
  for (auto &[op, departure] : departures_) {
    departure.slots = departure.buffers.empty() ? 1 : std::numeric_limits<int64_t>::max();
    for (Operation *buffer : departure.buffers)
      departure.slots = std::min(departure.slots, slots(buffer));
  }
}

plan::RoutineOp InFlight::routineOf(plan::CallOp call) const {
  return routines_.find(call.getRoutineAttr().getAttr())->second;
}

void InFlight::noteRoutine(plan::RoutineOp routine) {
  Buffers &touched = touched_[routine], &used = used_[routine], written;
  Arrival *feeds = nullptr;

  for (auto command : routine.getOps<plan::CommandOpInterface>()) {
    Arrival *arrival = nullptr;
    if (isa<plan::FeedOp>(command.getOperation())) {
      if (!feeds) {
        const uint64_t stage = routine.getStage().value_or(0);
        const std::string number = stage ? "::" + std::to_string(stage) : "";
        feeds = &arrivals_[command];
        feeds->ready = "input_ready" + number;
        feeds->freed = "input_done" + number;
      }
      arrival = feeds;
    } else if (auto receive = dyn_cast<plan::ReceiveOp>(command.getOperation())) {
      arrival = &arrivals_[command];
      arrival->ready = (receive.getChannel() + "::received").str();
      arrival->freed = (receive.getChannel() + "::taken").str();
    } else if (auto send = dyn_cast<plan::SendOp>(command.getOperation())) {
      noteSend(send, written);
    }
    for (auto [index, operand] : llvm::enumerate(command.getBuffers())) {
      auto buffer = operand.getDefiningOp<plan::BufferOp>();
      if (buffer.getScope() != plan::Scope::Slot)
        continue;
      touched.insert(buffer);
      if (arrival)
        arrival->buffers.insert(buffer);
      else
        used.insert(buffer);
      if (command.writes(index))
        written.insert(buffer);
    }
  }
}

void InFlight::noteSend(plan::SendOp send, const Buffers &written) {
  Departure &departure = departures_[send];
  departure.sent = (send.getChannel() + "::sent").str();
  for (Value operand : send.getBuffers())
    if (Operation *buffer = operand.getDefiningOp(); written.contains(buffer))
      departure.buffers.insert(buffer);
}

void InFlight::countSlots(plan::ProgramOp program) {
  struct Span {
    int64_t first, last; // calls
  };
  llvm::MapVector<Operation *, std::vector<Span>> spans; // by buffer and micro-batch
  int64_t number = 0, microbatches = 1;
  for (auto call : program.getOps<plan::CallOp>()) {
    const auto microbatch = int64_t(call.getMicrobatch());
    microbatches = std::max(microbatches, microbatch + 1);
    for (Operation *buffer : touched_.find(routineOf(call))->second) {
      auto &list = spans[buffer];
      if (int64_t(list.size()) <= microbatch)
        list.resize(size_t(microbatch) + 1, Span{-1, -1});
      Span &span = list[size_t(microbatch)];
      span.first = span.first < 0 ? number : span.first;
      span.last = number;
    }
    ++number;
  }
  microbatches_ = std::max(microbatches_, microbatches);
  for (auto &[buffer, list] : spans) {
    int64_t most = 1;
    size_t next = 0; // the first micro-batch that begins behind the end of this one
    for (size_t m = 0; m < list.size(); ++m) {
      if (list[m].first < 0)
        continue; // no call of this micro-batch uses it
      for (next = std::max(next, m); next < list.size() && list[next].first <= list[m].last;)
        ++next;
      most = std::max<int64_t>(most, int64_t(next - m));
    }
    slots_[buffer] = std::max(slots_.lookup(buffer), most);
  }
  for (auto &[op, departure] : departures_)
    for (Operation *buffer : departure.buffers)
      if (spans.contains(buffer))
        slots_[buffer] = std::max(slots_.lookup(buffer), std::min<int64_t>(2, microbatches));
}

/// The last routine that uses any buffer of an arrival, in the order of calls of one micro-batch.
void InFlight::noteLastReaders(plan::ProgramOp step) {
  for (auto call : step.getOps<plan::CallOp>())
    if (call.getMicrobatch() == 0)
      for (auto &[op, arrival] : arrivals_)
        if (uses(routineOf(call), arrival.buffers))
          arrival.lastReader = routineOf(call);
}

/// What is received once a step could be received at its start, and would keep its bytes all step long. Its post is
/// delayed: it waits for the compute that is called before it, if that is of no later micro-batch.
void InFlight::delayReceives(plan::ProgramOp step) {
  struct Before {
    plan::RoutineOp compute; // null: nothing is
    int64_t microbatch = 0, calls = 0, delay = 0;
  };
  llvm::MapVector<Operation *, Before> receives; // by routine
  Before last;
  for (auto call : step.getOps<plan::CallOp>()) {
    plan::RoutineOp routine = routineOf(call);
    const auto microbatch = int64_t(call.getMicrobatch());
    const plan::Phase phase = routine.getPhase();
    if (phase == plan::Phase::Begin && !last.compute)
      continue; // sums start at zero; that is no compute to wait for. Between layers it awaits what leaves
                // (StepStart.h)
    if (phase != plan::Phase::Receive && phase != plan::Phase::Feed) {
      last.compute = routine;
      last.microbatch = microbatch;
      continue;
    }
    Before &before = receives.try_emplace(routine, last).first->second;
    before.delay = microbatch - before.microbatch;
    ++before.calls;
  }
  for (auto &[op, arrival] : arrivals_)
    if (const auto it = receives.find(op->getParentOp()); isa<plan::ReceiveOp>(op) && it != receives.end())
      if (const Before &before = it->second; before.calls == 1 && before.compute && before.delay >= 0) {
        arrival.lastReader = before.compute;
        arrival.delay = before.delay;
      }
}

const Arrival &InFlight::arrivalOf(Operation *command) const {
  for (const auto &[op, arrival] : arrivals_)
    if (op == command || (isa<plan::FeedOp>(op) && isa<plan::FeedOp>(command) && op->getBlock() == command->getBlock()))
      return arrival;
  llvm_unreachable("every feed and receive has an arrival");
}
