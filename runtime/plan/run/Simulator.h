//===- Simulator.h - a run of a program, without its work -----------------===//
//
// Runs the queues of all roles together, one rank for each role, and does nothing in a command. A queue takes its
// commands in order. A wait looks at a counter that only rises; a collective or message goes on when all roles that
// take part have come to it. What holds once holds for ever, so the order in which queues are tried does not matter: if
// this run ends, every run does, and if it gets stuck, every run does. A sender waits for its receiver here, as in one
// process; a transport that buffers messages only waits less.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/RolePeers.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ds::plan {

/// One execution of one command by one rank of a role.
struct Instance {
  const proto::Command *command;
  uint32_t role;
  uint32_t call, routine, index; ///< where it stands
  uint32_t queue;
  uint64_t microbatch;
  uint64_t position; ///< among what its queue executes in the run, from 1
};

/// Told what happens in a run, in an order that can happen.
class RunObserver {
public:
  virtual ~RunObserver() = default;
  /// Called for a send before it is called for its receive.
  virtual void executed(const Instance &) = 0;
};

/// A queue that can never go on.
struct Deadlock {
  Instance instance;                ///< what it stands before
  const proto::Wait *wait;          ///< on an event that stays too low; nullptr: at a rendezvous with another role
  uint64_t value;                   ///< of that event; or how often the other role comes to the rendezvous
  uint64_t wanted;                  ///< the value that would do
  std::optional<Instance> heldBack; ///< what could end the wait, and stands behind this or before it in its own queue
};

/// Simulates `program`, which every role has, from its first call to its last, or to its tail. Returns why it cannot
/// end, or nothing. Of several queues that are stuck, the one that the others wait for; of a circle of them one at a
/// rendezvous, if there is any. Without an observer it passes over commands that neither wait, signal nor meet other
/// roles.
std::optional<Deadlock> simulate(const proto::Plan &plan, const std::string &program, RolePeers &peers,
                                 RunObserver *observer, bool withTail = true);

} // namespace ds::plan
