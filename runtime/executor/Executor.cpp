//===- Executor.cpp - prepare, initialize, execute ------------------------===//
#include "runtime/executor/Executor.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Shape.h"
#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/comm/Transport.h"
#include "runtime/device/Arena.h"
#include "runtime/device/Device.h"
#include "runtime/device/Event.h"
#include "runtime/device/QueueStanding.h"
#include "runtime/device/Rendezvous.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Command.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/executor/MemoryCheck.h"
#include "runtime/executor/NumericsCheck.h"
#include "runtime/executor/RecordedPrograms.h"
#include "runtime/executor/Run.h"
#include "runtime/executor/Scalar.h"
#include "runtime/executor/TracedTask.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/executor/WriteObserver.h"
#include "runtime/executor/WrittenOperands.h"
#include "runtime/flight/FlightRank.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/CommandName.h"
#include "runtime/plan/run/Tail.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"
#include "runtime/profile/ProfiledTask.h"
#include "runtime/trace/Trace.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::runtime {

namespace {

/// Runs are recorded whole, so nothing may look at what a command did: checks, observers and traces do.
std::vector<bool> recordablePrograms(const plan::proto::Role &role, const Device &device,
                                     const ExecutorOptions &options) {
  const bool looks = options.checkMemory || options.checkNumerics || options.observers != nullptr ||
                     options.trace != nullptr || options.profile != nullptr;
  std::vector<bool> recordable;
  for (const plan::proto::Program &program : role.programs())
    recordable.push_back(program.captured() && device.records() && !looks);
  return recordable;
}

} // namespace

Executor::Executor(const plan::proto::Plan &plan, Device &device, const kernels::KernelRegistry &kernels,
                   const ExecutorOptions &options)
    : plan_(plan), role_(plan::roleOfRank(plan, options.rank)), device_(device),
      position_(plan::positionOfRank(plan, options.rank)), storage_(device, plan, options.rank, options.promisedBytes),
      communicators_(plan, role_, options.rank, options.transport),
      channels_(plan, role_, options.rank, options.transport), transport_(options.transport),
      recorded_(recordablePrograms(role_, device, options)) {
  if (std::ranges::any_of(role_.programs(), [](const auto &program) { return program.captured(); }) &&
      !allProcesses(recorded_.any())) // DS_CUDA_GRAPH=0 on some
    recorded_.giveUpAll();
  for (int i = 0; i < role_.arenas_size() && options.transport != nullptr; ++i)
    if (const Arena &arena = *storage_.arenas()[size_t(i)]; role_.arenas(i).space() == "device")
      options.transport->registerMemory(position_.rank, {arena.base(), arena.bytes()});
  for (int i = 0; i < role_.events_size(); ++i)
    events_.push_back(&device.createEvent());
  if (options.flight != nullptr)
    flight_ = &options.flight->addRank(plan_, options.rank);
  if (options.saved != nullptr)
    gate_ = std::make_unique<StateGate>(role_, (*options.saved)[options.rank]);
  makeCommands(kernels, options);
  makeQueues(options);
  tellWhoWaitsForWhom();
  pairNexts();
}

Executor::~Executor() = default;

void Executor::makeCommands(const kernels::KernelRegistry &kernels, const ExecutorOptions &options) {
  CommandContext context{plan_,     role_,          storage_,  &kernels, {.maxWorkers = options.threads},
                         position_, communicators_, channels_, device_};
  const kernels::KernelRegistry &hostKernels = options.hostKernels != nullptr ? *options.hostKernels : kernels;
  NumericsCheck numerics;
  if (options.checkMemory)
    memoryCheck_ = std::make_unique<MemoryCheck>(context);
  std::vector<TraceRow *> rows;
  for (int q = 0; q < role_.queues_size() && options.trace != nullptr; ++q)
    rows.push_back(&options.trace->addRow(position_.rank, uint32_t(q), role_.queues(q).name()));
  for (int r = 0; r < role_.routines_size(); ++r) {
    lists_.emplace_back(size_t(role_.queues_size()));
    feeds_.emplace_back();
    for (int c = 0; c < role_.routines(r).commands_size(); ++c) {
      const plan::proto::Command &command = role_.routines(r).commands(c);
      const std::string where = plan::commandName(plan_, role_, uint32_t(r), uint32_t(c));
      context.caller = uint32_t(commands_.size());
      context.kernels = role_.queues(int(command.queue())).kind() == plan::proto::Queue::HOST ? &hostKernels : &kernels;
      Task *task = commands_.emplace_back(makeCommand(context, command, where)).get();
      if (command.has_feed())
        feeds_.back().push_back(commands_.back().get());
      if (options.checkNumerics)
        task = observed(numerics, context, uint32_t(r), uint32_t(c), where, task, wrappers_);
      if (options.observers != nullptr)
        task = observed(*options.observers, context, uint32_t(r), uint32_t(c), where, task, wrappers_);
      if (gate_)
        task = gate_->around(command, *task, wrappers_);
      if (memoryCheck_)
        task = wrappers_.emplace_back(memoryCheck_->around(uint32_t(r), uint32_t(c), where, *task)).get();
      if (options.trace != nullptr)
        task = wrappers_
                   .emplace_back(
                       traced(*options.trace, *rows[command.queue()], command, role_.routines(r).name(), where, *task))
                   .get();
      if (options.profile != nullptr)
        task = wrappers_
                   .emplace_back(
                       profiled(options.profile->add({position_.rank, &role_, &role_.routines(r), &command}), *task))
                   .get();
      ListedCommand &listed = lists_.back()[command.queue()].emplace_back(
          ListedCommand{.task = task,
                        .waits = {},
                        .signals = {},
                        .what = names_.emplace_back(where).c_str(),
                        .number = context.caller,
                        .entrances = flight_ != nullptr ? flight_->entrances(command) : nullptr,
                        .rendezvous = rendezvousOf(command)});
      if (flight_ != nullptr && command.has_collective())
        communicators_.find(command.collective().communicator(), role_.queues(int(command.queue())).kind())
            .countMessages(flight_->messages(command));
      for (const plan::proto::Wait &wait : command.waits())
        listed.waits.push_back({events_[wait.event()], wait.delay()});
      for (uint32_t event : command.signals())
        listed.signals.push_back(events_[event]);
    }
  }
}

/// Kernels run on queues of two kinds, by as many threads.
static bool runsKernels(const plan::proto::Queue &queue) {
  return queue.kind() == plan::proto::Queue::COMPUTE || queue.kind() == plan::proto::Queue::HOST;
}

/// What the machine's processors do themselves.
static bool isOnHost(const plan::proto::Queue &queue) {
  return queue.kind() == plan::proto::Queue::HOST || queue.kind() == plan::proto::Queue::IO;
}

void Executor::makeQueues(const ExecutorOptions &options) {
  size_t depth = 1;
  for (const plan::proto::Program &program : role_.programs())
    depth = std::max(depth, size_t(program.calls_size())); // a whole run fits, so the host never waits to enqueue
  for (int i = 0; i < role_.queues_size(); ++i)
    queues_.push_back(device_.createQueue({.name = role_.queues(i).name(),
                                           .workers = runsKernels(role_.queues(i)) ? options.threads : 1,
                                           .onHost = isOnHost(role_.queues(i)),
                                           .depth = depth,
                                           .rank = position_.rank,
                                           .patience = options.patience,
                                           .ring = flight_ != nullptr ? &flight_->ring(uint32_t(i)) : nullptr}));
}

/// Where a command meets other ranks, or nullptr.
Rendezvous *Executor::rendezvousOf(const plan::proto::Command &command) const {
  if (command.has_collective())
    return &communicators_.find(command.collective().communicator(), role_.queues(int(command.queue())).kind());
  if (command.has_send())
    return &channels_.sending(command.send().channel());
  if (command.has_receive())
    return &channels_.receiving(command.receive().channel());
  return nullptr;
}

/// So that an error can name the queue that holds up all others (QueueStanding.h).
void Executor::tellWhoWaitsForWhom() {
  for (const plan::proto::Routine &routine : role_.routines())
    for (const plan::proto::Command &command : routine.commands()) {
      const QueueStanding *queue = queues_[command.queue()]->standing();
      if (queue == nullptr)
        continue;
      for (const uint32_t event : command.signals())
        events_[event]->raisedBy(*queue);
      if (Rendezvous *rendezvous = rendezvousOf(command))
        rendezvous->belongsTo(*queue);
    }
}

void Executor::pairNexts() {
  for (const plan::proto::Buffer &buffer : role_.buffers())
    if (buffer.has_next_of())
      storage_.arenas()[buffer.arena()]->pair(role_.buffers(int(buffer.next_of())).offset(), buffer.offset(),
                                              buffer.bytes());
  for (const plan::proto::Program &program : role_.programs()) {
    std::set<uint32_t> written;
    for (const plan::proto::Call &call : program.calls())
      for (const plan::proto::Command &command : role_.routines(int(call.routine())).commands())
        for (const plan::proto::Operand *operand : writtenBy(command))
          if (role_.buffers(int(operand->buffer())).has_next_of())
            written.insert(operand->buffer());
    nexts_.emplace_back(written.begin(), written.end());
  }
}

void Executor::initialize(const VariableSources &sources) {
  if (!device_.executes())
    return;
  if (memoryCheck_)
    memoryCheck_->fillArenas(device_);
  device_.enter();
  for (const std::unique_ptr<Command> &command : commands_)
    command->initialize();
  const std::vector<HeldPart> parts = heldParts(plan_, position_.rank);
  zeroPadding(parts);
  for (const HeldPart &part : parts) {
    std::byte *target = storage_.buffer(part.buffer).base + part.byteOffset;
    const auto write = [&](std::span<const std::byte> bytes) {
      device_.write(target, bytes);
      target += bytes.size();
    };
    const uint64_t version = plan::versionOf(plan_, plan_.variables(int(part.variable)), position_.rank);
    sources.read(part.variable, part.first, part.count, write, version);
  }
}

/// What of a bucket's buffer no part covers becomes zero, and commands keep it so.
void Executor::zeroPadding(std::span<const HeldPart> parts) const {
  const std::vector<std::byte> zeros(size_t(1) << 16);
  size_t next = 0; // parts stand in the order of buffers
  for (uint32_t i = 0; i < uint32_t(role_.buffers_size()); ++i) {
    const plan::proto::Buffer &buffer = role_.buffers(int(i));
    uint64_t at = 0;
    const auto zeroTo = [&](uint64_t end) {
      for (; at < end && buffer.has_bucket(); at += std::min<uint64_t>(zeros.size(), end - at))
        device_.write(storage_.buffer(i).base + at, std::span(zeros).first(std::min<uint64_t>(zeros.size(), end - at)));
    };
    for (; next < parts.size() && parts[next].buffer == i; ++next) {
      zeroTo(parts[next].byteOffset);
      at = parts[next].byteOffset +
           parts[next].count * uint64_t(byteSize(DType(plan_.variables(int(parts[next].variable)).dtype())));
    }
    zeroTo(buffer.bytes());
  }
}

std::optional<uint32_t> Executor::program(std::string_view name) const {
  for (int i = 0; i < role_.programs_size(); ++i)
    if (role_.programs(i).name() == name)
      return uint32_t(i);
  return std::nullopt;
}

void Executor::submit(const Run &run) noexcept {
  if (!device_.failure().ok())
    return;
  run_ = run;
  exchanged_ = {};
  if (flight_ != nullptr) {
    flight_->run().step = run.step;
    flight_->run().program = run.program;
  }
  resetEvents();
  const plan::proto::Program &program = role_.programs(int(run.program));
  Status status = device_.beginRun(run.step);
  switch (recorded_.next(run.program)) {
  case RecordedPrograms::Form::Enqueue:
    if (status.ok())
      enqueueCalls(program);
    recorded_.enqueued(run.program);
    break;
  case RecordedPrograms::Form::Record:
    if (status.ok())
      status = record(program); // its commands stage their data while they are recorded
    status = allProcesses(status.ok()) ? recorded_.run(run.program).launch() : enqueueInstead(program, status);
    break;
  case RecordedPrograms::Form::Launch:
    if (status.ok())
      status = launch(program);
    break;
  }
  if (!status.ok())
    device_.fail(status);
}

void Executor::resetEvents() noexcept {
  for (Event *event : events_)
    event->reset();
}

void Executor::enqueueCalls(const plan::proto::Program &program) noexcept {
  enqueueCalls(program, 0, int(plan::callsBeforeTail(program).size()));
}

void Executor::enqueueCalls(const plan::proto::Program &program, int first, int end) noexcept {
  for (int i = first; i < end; ++i) {
    const plan::proto::Call &call = program.calls(i);
    const std::vector<CommandList> &lists = lists_[call.routine()];
    for (size_t queue = 0; queue < queues_.size(); ++queue)
      if (!lists[queue].empty())
        queues_[queue]->submit(lists[queue], {call.microbatch(), uint32_t(i), &run_});
  }
}

Status Executor::record(const plan::proto::Program &program) noexcept {
  if (const Status status = device_.beginRecording(); !status.ok())
    return status;
  enqueueCalls(program);
  for (const std::unique_ptr<Queue> &queue : queues_)
    queue->finish();
  std::unique_ptr<RecordedRun> run;
  if (const Status status = device_.endRecording(run); !status.ok())
    return status;
  recorded_.recorded(run_.program, std::move(run));
  return device_.failure(); // of a command
}

/// NCCL wants a collective to be launched from a graph by all ranks or by none.
bool Executor::allProcesses(bool mine) noexcept {
  const bool alone = transport_ == nullptr || transport_->localRanks().size() == transport_->ranks();
  return alone ? mine : !transport_->anyOf(!mine);
}

Status Executor::enqueueInstead(const plan::proto::Program &program, const Status &why) noexcept {
  if (!device_.failure().ok())
    return why;
  if (!why.ok()) // else another rank says so
    std::fprintf(stderr, "note: program %s is enqueued command by command, since it could not be recorded: %s\n",
                 program.name().c_str(), why.message());
  recorded_.giveUp(run_.program);
  resetEvents();
  enqueueCalls(program);
  return Status::success();
}

Status Executor::launch(const plan::proto::Program &program) noexcept {
  for (int i = 0; i < program.calls_size(); ++i) {
    const plan::proto::Call &call = program.calls(i);
    for (Command *feed : feeds_[call.routine()])
      if (const Status status = feed->stage({call.microbatch(), uint32_t(i), &run_}); !status.ok())
        return status;
  }
  return recorded_.run(run_.program).launch();
}

bool Executor::wantsTail() const noexcept {
  const plan::proto::Program &program = role_.programs(int(run_.program));
  if (!program.has_tail() || !device_.executes())
    return false;
  return readScalar(program.tail().unless_one()).asDouble() != 1; // NaN is not 1
}

/// Events keep what the calls before have left in them: to waits and signals the tail is more of the same run.
void Executor::submitTail() noexcept {
  const plan::proto::Program &program = role_.programs(int(run_.program));
  if (device_.failure().ok())
    enqueueCalls(program, int(program.tail().first_call()), program.calls_size());
}

void Executor::exchange(std::span<const uint32_t> nexts) noexcept {
  for (const uint32_t next : nexts) {
    const plan::proto::Buffer &buffer = role_.buffers(int(next));
    storage_.arenas()[buffer.arena()]->exchange(role_.buffers(int(buffer.next_of())).offset(), buffer.offset());
  }
}

void Executor::exchangeNexts() noexcept {
  exchanged_ = nexts_[run_.program];
  exchange(exchanged_);
}

void Executor::exchangeBack() noexcept { exchange(std::exchange(exchanged_, {})); }

Status Executor::execute(const Run &run) noexcept {
  submit(run);
  Status status = finish();
  if (status.ok() && wantsTail()) {
    submitTail();
    status = finish();
  }
  if (status.ok())
    exchangeNexts();
  return status;
}

Status Executor::finish() noexcept {
  for (const std::unique_ptr<Queue> &queue : queues_)
    queue->finish();
  if (const std::optional<kernels::RefusedValue> refused = device_.refused())
    device_.fail(commands_[refused->caller - 1]->refusal(refused->value));
  return device_.failure();
}

std::optional<Scalar> Executor::metric(uint32_t program, std::string_view name) const noexcept {
  if (!device_.executes())
    return std::nullopt;
  for (const plan::proto::Metric &metric : role_.programs(int(program)).metrics())
    if (metric.name() == name)
      return readScalar(metric.source());
  return std::nullopt;
}

Scalar Executor::readScalar(const plan::proto::Operand &operand) const noexcept {
  std::array<std::byte, 8> bytes{};
  const DType dtype = DType(operand.dtype());
  device_.read(std::span(bytes).first(size_t(byteSize(dtype))), storage_.operand(operand).base);
  return Scalar::fromBytes(dtype, bytes.data());
}

void Executor::read(const HeldPart &part, uint64_t first, std::span<std::byte> bytes) const noexcept {
  const auto elementBytes = uint64_t(byteSize(DType(plan_.variables(int(part.variable)).dtype())));
  device_.read(bytes, storage_.buffer(part.buffer).base + part.byteOffset + first * elementBytes);
}

void Executor::readVariable(uint32_t variable, const std::function<void(std::span<const std::byte>)> &sink) const {
  const plan::proto::Variable &held = plan_.variables(int(variable));
  const std::vector<RankPart> covering = Coverings(plan_, std::span(&position_.rank, 1)).of(variable);
  const auto elements = uint64_t(elementCount({held.shape().data(), size_t(held.shape_size())}));
  if (coveredElements(covering) < elements)
    throw Error("rank " + std::to_string(position_.rank) + " does not hold element " +
                std::to_string(coveredElements(covering)) + " of variable " + held.name());
  readCovering(
      covering, uint64_t(byteSize(DType(held.dtype()))),
      [this](const RankPart &part, uint64_t first, std::span<std::byte> bytes) { read(part.part, first, bytes); },
      sink);
}

} // namespace ds::runtime
