//===- Executor.h - prepare, initialize, execute --------------------------===//
//
//   prepare      the constructor asks: arenas reserved, kernels found, addresses and queues laid out
//   initialize   acquires: primitives built, variables loaded
//   execute      only enqueues calls and waits for the end of the program; allocates nothing, throws nothing
//
// Cf. XLA's thunks (Prepare, Initialize, ExecuteOnStream).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/device/Device.h"
#include "runtime/executor/Channels.h"
#include "runtime/executor/Command.h"
#include "runtime/executor/Communicators.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/executor/RecordedPrograms.h"
#include "runtime/executor/Run.h"
#include "runtime/executor/Scalar.h"
#include "runtime/executor/StateGate.h"
#include "runtime/executor/Storage.h"
#include "runtime/executor/Traffic.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::runtime {

class FlightRank;
class FlightRanks;
class MemoryCheck;
class Profile;
class Trace;
class TraceRow;
class WriteObservers;

struct ExecutorOptions {
  uint32_t rank = 0;
  int threads = 1;                                      ///< compute workers, the compute queue's thread included
  const kernels::KernelRegistry *hostKernels = nullptr; ///< of queues of kind HOST; nullptr: as the device's
  bool checkMemory = false;
  bool checkNumerics = false;
  WriteObservers *observers = nullptr; ///< asked while the executor is made; nullptr: nobody looks at results
  Trace *trace = nullptr;              ///< outlives the executor; nullptr: none
  FlightRanks *flight = nullptr;       ///< likewise
  Profile *profile = nullptr;          ///< likewise
  Transport *transport = nullptr;      ///< outlives the executor; a plan of one rank needs none
  /// What each rank copies elsewhere while a run goes on, by rank, in order; outlives the executor; nullptr: nothing.
  const std::vector<std::vector<HeldPart>> *saved = nullptr;
  uint64_t promisedBytes = 0;                                    ///< that other ranks of this host will use
  std::chrono::milliseconds patience = std::chrono::minutes(11); ///< QueueOptions::patience
};

/// Runs the programs of one rank of a plan that PlanReader has validated. Plan, device and kernels outlive it.
class Executor {
public:
  Executor(const plan::proto::Plan &plan, Device &device, const kernels::KernelRegistry &kernels,
           const ExecutorOptions &options);
  ~Executor();
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  void initialize(const VariableSources &sources);

  /// The program's index, or nothing.
  std::optional<uint32_t> program(std::string_view name) const;

  /// Enqueues a program from its first call to its last, or to its tail; `finish` awaits it. The first failure of any
  /// queue is returned and ends all running. Collectives and messages of several ranks need all of them submitted
  /// before one is awaited.
  void submit(const Run &run) noexcept;
  Status finish() noexcept;
  /// Whether what was submitted last, and has ended, left a scalar that asks for the program's tail.
  bool wantsTail() const noexcept;
  /// Enqueues the tail behind the rest of its program, for `finish` too.
  void submitTail() noexcept;
  /// When all of a run has ended: what it wrote for the next run takes the place of what it read.
  void exchangeNexts() noexcept;
  /// Takes the exchange after the last run back; afterwards there is none to take back.
  void exchangeBack() noexcept;
  /// All of the above for a rank that is alone.
  Status execute(const Run &run) noexcept;

  /// A metric of a program that has just run; nothing where the plan has none of that name or the device executes
  /// nothing.
  std::optional<Scalar> metric(uint32_t program, std::string_view name) const noexcept;

  /// Copies elements of a held part; `first` counts within the part.
  void read(const HeldPart &part, uint64_t first, std::span<std::byte> bytes) const noexcept;

  /// Hands the bytes of a variable to `sink` in order; throws ds::Error if this rank does not hold all of it.
  void readVariable(uint32_t variable, const std::function<void(std::span<const std::byte>)> &sink) const;

  const plan::proto::Role &role() const { return role_; }
  const plan::RankPosition &position() const { return position_; }
  const Storage &storage() const { return storage_; }
  /// What this rank has handed to others and received from them since the beginning.
  Traffic traffic() const noexcept {
    return {communicators_.wireBytes(), channels_.sentBytes(), channels_.receivedBytes()};
  }
  Device &device() const { return device_; }
  /// Where ExecutorOptions::saved was given; else nullptr.
  StateGate *gate() const { return gate_.get(); }

private:
  void makeCommands(const kernels::KernelRegistry &kernels, const ExecutorOptions &options);
  void makeQueues(const ExecutorOptions &options);
  Rendezvous *rendezvousOf(const plan::proto::Command &command) const;
  void tellWhoWaitsForWhom();
  void resetEvents() noexcept;
  Scalar readScalar(const plan::proto::Operand &operand) const noexcept;
  void enqueueCalls(const plan::proto::Program &program, int first, int end) noexcept;
  /// All of them, or those before its tail.
  void enqueueCalls(const plan::proto::Program &program) noexcept;
  /// Whether every process of the run says so; ranks that share one meet elsewhere.
  bool allProcesses(bool mine) noexcept;
  /// After a recording that failed here or elsewhere; `why`: success, or what failed here.
  Status enqueueInstead(const plan::proto::Program &program, const Status &why) noexcept;
  Status launch(const plan::proto::Program &program) noexcept;
  Status record(const plan::proto::Program &program) noexcept;
  void zeroPadding(std::span<const HeldPart> parts) const;
  void pairNexts();
  void exchange(std::span<const uint32_t> nexts) noexcept;

  const plan::proto::Plan &plan_;
  const plan::proto::Role &role_;
  Device &device_;
  const plan::RankPosition position_;
  Storage storage_;
  Communicators communicators_;
  Channels channels_;
  Transport *const transport_;
  FlightRank *flight_ = nullptr; // of the recorder, or none
  std::vector<Event *> events_;
  std::vector<std::unique_ptr<Command>> commands_;
  std::vector<std::vector<Command *>> feeds_; // by routine
  std::unique_ptr<MemoryCheck> memoryCheck_;
  std::unique_ptr<StateGate> gate_;
  std::vector<std::unique_ptr<Task>> wrappers_; // around commands_: observers, --save, --check-memory, --trace
  std::deque<std::string> names_;               // of commands, for errors; never move
  std::vector<std::vector<CommandList>> lists_; // by routine and queue
  Run run_;                                     // what the queues read
  RecordedPrograms recorded_;
  std::vector<std::vector<uint32_t>> nexts_;   // by program: buffers that it writes and that are the next of another
  std::span<const uint32_t> exchanged_;        // of nexts_: after the last run
  std::vector<std::unique_ptr<Queue>> queues_; // last: their threads end before anything they use
};

} // namespace ds::runtime
