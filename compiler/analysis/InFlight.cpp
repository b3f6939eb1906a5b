//===- InFlight.cpp - how many micro-batches of a value a role holds ----------===//
#include "compiler/analysis/InFlight.h"

#include "compiler/analysis/Stages.h"

using namespace mlir;
using namespace ds;

InFlight::InFlight(dist::RoleOp role, const SymbolTable &symbols)
    : stages_(FragmentIndex(role->getParentOfType<ModuleOp>()).stages()) {
  llvm::SetVector<dist::FragmentOp> fragments;
  role.walk([&](dist::CallOp call) { fragments.insert(symbols.lookup<dist::FragmentOp>(call.getFragment())); });
  for (dist::FragmentOp fragment : fragments)
    noteFragment(fragment);
  for (auto program : role.getOps<dist::ProgramOp>())
    follow(program, symbols);
  for (auto &[op, arrival] : arrivals_) {
    for (StringAttr value : arrival.values)
      arrival.slots = std::max(arrival.slots, slots(value));
    for (StringAttr value : arrival.values) // one event frees all of them
      slots_[value] = arrival.slots;
    arrival.delay = arrival.slots;
  }
  for (auto program : role.getOps<dist::ProgramOp>())
    if (program.getSymName() == "step")
      delayReceivesOnce(program, symbols);
  for (auto &[op, departure] : departures_) {
    departure.slots = departure.values.empty() ? 1 : std::numeric_limits<int64_t>::max();
    for (StringAttr value : departure.values)
      departure.slots = std::min(departure.slots, slots(value));
  }
}

void InFlight::noteFragment(dist::FragmentOp fragment) {
  auto &used = used_[fragment], &loaded = loaded_[fragment];
  Arrival *feeds = nullptr;
  for (Operation &op : fragment.getBody().front()) {
    if (auto feed = dyn_cast<dist::FeedOp>(op)) {
      if (!feeds) {
        feeds = &arrivals_[&op];
        const auto stage = int64_t(fragment.getStage().value_or(0));
        feeds->ready = numberedName("input_ready", stage, stages_);
        feeds->freed = numberedName("input_done", stage, stages_);
      }
      feeds->values.insert(feed.getValueAttr().getAttr());
      used.insert(feed.getValueAttr().getAttr());
    } else if (auto receive = dyn_cast<dist::ReceiveOp>(op)) {
      Arrival &arrival = arrivals_[&op];
      arrival.ready = (receive.getChannel() + "::received").str();
      arrival.freed = (receive.getChannel() + "::taken").str();
      for (auto name : receive.getValues().getAsRange<FlatSymbolRefAttr>()) {
        arrival.values.insert(name.getAttr());
        used.insert(name.getAttr());
      }
    } else if (auto send = dyn_cast<dist::SendOp>(op)) {
      Departure &departure = departures_[&op];
      departure.sent = (send.getChannel() + "::sent").str();
      for (Value tensor : send.getTensors())
        for (Operation *user : tensor.getUsers())
          if (auto store = dyn_cast<dist::StoreOp>(user))
            departure.values.insert(store.getValueAttr().getAttr());
    } else if (auto store = dyn_cast<dist::StoreOp>(op)) {
      used.insert(store.getValueAttr().getAttr());
    } else if (auto load = dyn_cast<dist::LoadOp>(op)) {
      used.insert(load.getValueAttr().getAttr());
      loaded.insert(load.getValueAttr().getAttr());
    }
  }
}

void InFlight::follow(dist::ProgramOp program, const SymbolTable &symbols) {
  struct Span {
    int64_t first, last; // calls
  };
  llvm::MapVector<StringAttr, std::vector<Span>> spans; // by value and micro-batch
  int64_t number = 0, microbatches = 1;
  for (auto call : program.getOps<dist::CallOp>()) {
    auto fragment = symbols.lookup<dist::FragmentOp>(call.getFragment());
    const auto microbatch = int64_t(call.getMicrobatch());
    microbatches = std::max(microbatches, microbatch + 1);
    for (StringAttr value : used_.find(fragment)->second) {
      auto &list = spans[value];
      if (int64_t(list.size()) <= microbatch)
        list.resize(size_t(microbatch) + 1, Span{-1, -1});
      Span &span = list[size_t(microbatch)];
      span.first = span.first < 0 ? number : span.first;
      span.last = number;
    }
    ++number;
  }
  for (auto &[value, list] : spans) {
    int64_t max = 1;
    size_t next = 0; // the first micro-batch that begins behind the end of this one
    for (size_t m = 0; m < list.size(); ++m) {
      if (list[m].first < 0)
        continue; // no call of this micro-batch uses it
      for (next = std::max(next, m); next < list.size() && list[next].first <= list[m].last;)
        ++next;
      max = std::max<int64_t>(max, int64_t(next - m));
    }
    slots_[value] = std::max(slots_.lookup(value), max);
  }
  for (auto &[op, departure] : departures_)
    for (StringAttr value : departure.values)
      if (spans.contains(value))
        slots_[value] = std::max(slots_.lookup(value), std::min<int64_t>(2, microbatches));
  if (program.getSymName() == "step")
    findLastReaders(program, symbols);
}

/// The last fragment that loads any value of an arrival, in the order of calls of one micro-batch.
void InFlight::findLastReaders(dist::ProgramOp step, const SymbolTable &symbols) {
  llvm::DenseMap<StringAttr, dist::FragmentOp> lastReader; // of micro-batch 0
  llvm::DenseMap<Operation *, int64_t> position;
  int64_t number = 0;
  for (auto call : step.getOps<dist::CallOp>())
    if (call.getMicrobatch() == 0) {
      auto fragment = symbols.lookup<dist::FragmentOp>(call.getFragment());
      for (StringAttr value : loaded_.find(fragment)->second)
        lastReader[value] = fragment;
      position[fragment] = number++;
    }
  for (auto &[op, arrival] : arrivals_)
    for (StringAttr value : arrival.values)
      if (dist::FragmentOp reader = lastReader.lookup(value);
          reader && (!arrival.lastReader || position[reader] > position[arrival.lastReader]))
        arrival.lastReader = reader;
}

/// What is received once a step is received when the compute called before it is done, unless that is of a later
/// micro-batch.
void InFlight::delayReceivesOnce(dist::ProgramOp step, const SymbolTable &symbols) {
  struct Before {
    dist::FragmentOp compute; // null: nothing is
    int64_t microbatch = 0, calls = 0, delay = 0;
  };
  llvm::MapVector<Operation *, Before> receives; // by fragment
  Before last;
  for (auto call : step.getOps<dist::CallOp>()) {
    auto fragment = symbols.lookup<dist::FragmentOp>(call.getFragment());
    const auto microbatch = int64_t(call.getMicrobatch());
    const bool computes =
        llvm::any_of(fragment.getBody().front(), [](Operation &op) { return !isa<dist::ReceiveOp, dist::FeedOp>(op); });
    if (computes) {
      last.compute = fragment;
      last.microbatch = microbatch;
      continue;
    }
    Before &before = receives.try_emplace(fragment, last).first->second;
    before.delay = microbatch - before.microbatch;
    ++before.calls;
  }
  for (auto &[op, arrival] : arrivals_)
    if (const auto it = receives.find(op->getParentOp()); isa<dist::ReceiveOp>(op) && it != receives.end())
      if (const Before &before = it->second; before.calls == 1 && before.compute && before.delay >= 0) {
        arrival.lastReader = before.compute;
        arrival.delay = before.delay;
      }
}

const Arrival *InFlight::arrivalOf(StringAttr value) const {
  for (const auto &[op, arrival] : arrivals_)
    if (arrival.values.contains(value))
      return &arrival;
  return nullptr;
}

SmallVector<std::string> InFlight::sentBefore(dist::SendOp send) const {
  SmallVector<std::string> events;
  const Departure &own = departures_.find(send)->second;
  for (const auto &[op, departure] : departures_)
    if (op->getParentOp() == send->getParentOp() && op->isBeforeInBlock(send) &&
        llvm::any_of(departure.values, [&](StringAttr value) { return own.values.contains(value); }))
      events.push_back(departure.sent);
  return events;
}
