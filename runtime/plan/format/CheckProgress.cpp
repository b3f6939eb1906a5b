//===- CheckProgress.cpp - every run of every program comes to its end ----===//
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/Simulator.h"
#include "runtime/plan/world/RolePeers.h"

#include <algorithm>
#include <optional>
#include <string>

namespace ds::plan {
namespace {

/// `program` names it; each role has calls of its own.
std::string text(const proto::Plan &plan, const std::string &program, const Instance &instance) {
  const proto::Role &role = plan.roles(int(instance.role));
  const auto own =
      std::ranges::find_if(role.programs(), [&](const proto::Program &one) { return one.name() == program; });
  return placeInRun(plan, role, *own, int(instance.call), int(instance.index));
}

std::string meetingPoint(const proto::Plan &plan, const proto::Command &command) {
  if (command.has_collective()) {
    const uint32_t communicator = command.collective().communicator();
    return describe("communicator", communicator, plan.communicators(int(communicator)).name());
  }
  const uint32_t channel = command.has_send() ? command.send().channel() : command.receive().channel();
  return describe("channel", channel, plan.channels(int(channel)).name());
}

[[noreturn]] void refuseDeadlock(const proto::Plan &plan, const std::string &program, const Deadlock &deadlock,
                                 bool withTail) {
  const Instance &instance = deadlock.instance;
  const proto::Role &role = plan.roles(int(instance.role));
  const auto queueName = [&](const Instance &one) { return plan.roles(int(one.role)).queues(int(one.queue)).name(); };
  std::string what;
  if (deadlock.wait != nullptr)
    what = describe("event", deadlock.wait->event(), role.events(int(deadlock.wait->event())).name()) + " to reach " +
           std::to_string(deadlock.wanted) + "; it stays at " + std::to_string(deadlock.value);
  else
    what = "the other end of " + meetingPoint(plan, *instance.command) + ", which comes " +
           std::to_string(deadlock.value) + " times there, not " + std::to_string(deadlock.wanted);
  if (deadlock.heldBack)
    what += note("queue " + queueName(*deadlock.heldBack) + ", which could end that, stands before " +
                 text(plan, program, *deadlock.heldBack));
  refuse(text(plan, program, instance), "queue " + queueName(instance) + " would wait for ever " +
                                            (withTail ? "for " : "where the tail is not run, for ") + what);
}

} // namespace

void checkProgress(const proto::Plan &plan, RolePeers &peers) {
  for (const proto::Program &program : plan.roles(0).programs()) // all have the same
    for (const bool withTail : {false, true})
      if (withTail || program.has_tail())
        if (const std::optional<Deadlock> deadlock = simulate(plan, program.name(), peers, nullptr, withTail))
          refuseDeadlock(plan, program.name(), *deadlock, withTail);
}

} // namespace ds::plan
