//===- Task.h - what queues are given to do -------------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/device/CommandRing.h"

#include <cstdint>
#include <vector>

namespace ds::runtime {

class Event;
class Queue;
class Rendezvous;
struct Run; // runtime/executor/Run.h; devices pass it on without looking

/// One call of a routine within a run of a program: what changes between two executions of one command.
struct Call {
  uint64_t microbatch = 0; ///< `m` of plan.proto: picks slots and the values of waits and signals
  uint32_t index = 0;      ///< which call of its program this is
  const Run *run = nullptr;
};

/// The work of one command. A queue that runs on the host has it done when `run` returns; one that drives an
/// accelerator has it enqueued in order.
class Task {
public:
  virtual ~Task() = default;
  virtual Status run(const Call &call, Queue &queue) noexcept = 0;
};

/// Holds the queue until the event is at least m + 1 - delay. Cf. VkTimelineSemaphoreSubmitInfo, cudaStreamWaitEvent.
struct EventWait {
  Event *event;
  uint64_t delay; ///< micro-batches
};

struct ListedCommand {
  Task *task;
  std::vector<EventWait> waits;
  std::vector<Event *> signals; ///< raised to m + 1 when the task is done
  const char *what = "";        ///< the task's name in errors
  uint32_t number = 0;          ///< among all commands of the rank
  /// Of the communicator or channel that it enters. A queue that keeps a ring counts them; only this queue does.
  Entrances *entrances = nullptr;
  const Rendezvous *rendezvous = nullptr; ///< where it meets other ranks, if it does
};

/// The commands that one routine gives one queue: recorded once, submitted with every call.
/// Cf. cudaGraphExec_t, VkCommandBuffer, iree_hal_command_buffer_t.
using CommandList = std::vector<ListedCommand>;

} // namespace ds::runtime
