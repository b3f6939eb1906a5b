//===- Timeline.cpp - what happens when in a run, and before what ---------===//
#include "compiler/check/schedule/Timeline.h"

#include "compiler/check/schedule/Refusal.h"
#include "runtime/plan/world/RolePeers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace ds::check {

namespace {

std::string commandName(const proto::Command &command) {
  if (command.has_kernel())
    return command.kernel().kernel();
  if (command.has_collective())
    return proto::CollectiveCommand::Kind_Name(command.collective().kind());
  const auto *kinds = command.GetDescriptor()->FindOneofByName("kind");
  return std::string(command.GetReflection()->GetOneofFieldDescriptor(command, kinds)->name());
}

} // namespace

std::string placeOf(const proto::Plan &plan, const std::string &program, const Instance &instance) {
  const proto::Role &role = plan.roles(int(instance.role));
  std::string text = "program " + program + ", call " + std::to_string(instance.call) + " (routine " +
                     role.routines(int(instance.routine)).name() + ", micro-batch " +
                     std::to_string(instance.microbatch) + "), command " + std::to_string(instance.index) + " (" +
                     commandName(*instance.command);
  if (instance.command->reference_size() > 0) {
    const std::string &name = plan.reference().ops(int(instance.command->reference(0))).name();
    text += name.empty() ? "" : " of " + name;
  }
  return text + ")" + (plan.roles_size() > 1 ? " of role " + role.name() : "");
}

/// Follows a simulated run with vector clocks: a command starts after what its queue executed before it, and after what
/// came before the signals that its waits need.
class TimelineRecorder : public plan::RunObserver {
public:
  TimelineRecorder(const proto::Plan &plan, const std::string &program)
      : plan_(plan), program_(program), roles_(size_t(plan.roles_size())) {
    for (size_t r = 0; r < roles_.size(); ++r) {
      const auto queues = size_t(plan.roles(int(r)).queues_size());
      roles_[r].clocks.assign(queues, std::vector<uint64_t>(queues, 0));
      roles_[r].events.resize(size_t(plan.roles(int(r)).events_size()));
      joint_.timelines.emplace_back().queues_ = queues;
    }
  }

  void executed(const Instance &instance) override {
    RoleClocks &role = roles_[instance.role];
    std::vector<uint64_t> &clock = role.clocks[instance.queue];
    for (const proto::Wait &wait : instance.command->waits())
      if (const Signal *signal = releaseOf(role, wait, instance.microbatch))
        for (size_t q = 0; q < clock.size(); ++q)
          clock[q] = std::max(clock[q], signal->clock[q]);
    Timeline &timeline = joint_.timelines[instance.role];
    joint_.order.push_back({instance.role, timeline.instances.size()});
    timeline.instances.push_back(instance);
    timeline.clocks_.insert(timeline.clocks_.end(), clock.begin(), clock.end());
    clock[instance.queue] = instance.position;
    for (uint32_t event : instance.command->signals())
      signal(role, event, instance);
  }

  /// plan::validatePlan has refused such a plan, with more words.
  [[noreturn]] void refuse(const plan::Deadlock &deadlock) const {
    const Instance &at = deadlock.instance;
    throw Refusal{"progress",
                  text(at) + ": queue " + queueName(at) + " waits for ever",
                  {},
                  text(at),
                  {{at.role, program_, at.call, at.index}}};
  }

  /// The calls before a tail come to their end without it, so what they do can be followed first.
  JointTimeline take() {
    std::vector<uint32_t> tails(roles_.size(), UINT32_MAX); // their first calls
    for (size_t r = 0; r < tails.size(); ++r)
      if (const proto::Program *own = programNamed(plan_.roles(int(r)), program_); own && own->has_tail())
        tails[r] = own->tail().first_call();
    std::ranges::stable_partition(joint_.order, [&](const Step &step) {
      return joint_.timelines[step.role].instances[step.instance].call < tails[step.role];
    });
    return std::move(joint_);
  }

private:
  struct Signal {
    uint64_t value;
    std::vector<uint64_t> clock; ///< by queue, when the signalling command has finished
  };
  struct Event {
    std::optional<Instance> first; ///< that has signalled it
    std::vector<Signal> signals;   ///< their values ascend
  };
  struct RoleClocks {
    std::vector<std::vector<uint64_t>> clocks; ///< by queue
    std::vector<Event> events;
  };

  std::string text(const Instance &instance) const { return placeOf(plan_, program_, instance); }
  const std::string &queueName(const Instance &instance) const {
    return plan_.roles(int(instance.role)).queues(int(instance.queue)).name();
  }

  /// The signal that lets a wait go on: the first that is high enough; those of an event come from one queue, in order.
  /// None where it needs none, even if one came earlier in this run: the next may be faster.
  static const Signal *releaseOf(const RoleClocks &role, const proto::Wait &wait, uint64_t microbatch) {
    if (wait.delay() >= microbatch + 1)
      return nullptr;
    const std::vector<Signal> &signals = role.events[wait.event()].signals;
    const auto release = std::ranges::lower_bound(signals, microbatch + 1 - wait.delay(), {}, &Signal::value);
    return release == signals.end() ? nullptr : &*release;
  }

  void signal(RoleClocks &role, uint32_t index, const Instance &instance) const {
    Event &event = role.events[index];
    if (!event.first)
      event.first = instance;
    if (event.first->queue != instance.queue)
      throw Refusal{"progress",
                    text(instance) + ": event " + plan_.roles(int(instance.role)).events(int(index)).name() +
                        " is signalled by queue " + queueName(instance) + " and by queue " + queueName(*event.first) +
                        ", so which of them ends a wait depends on timing",
                    text(*event.first) + " signals it first"};
    if (event.signals.empty() || event.signals.back().value < instance.microbatch + 1) // a lower one releases nothing
      event.signals.push_back({instance.microbatch + 1, role.clocks[instance.queue]});
  }

  const proto::Plan &plan_;
  const std::string &program_;
  std::vector<RoleClocks> roles_;
  JointTimeline joint_;
};

namespace {

/// Throws unless a role enters a communicator from one queue.
void requireOneQueue(const proto::Plan &plan, const std::string &program, const Instance &first, const Instance &own) {
  if (first.queue == own.queue)
    return;
  const proto::Role &role = plan.roles(int(own.role));
  throw Refusal{"progress",
                placeOf(plan, program, own) + ": communicator " +
                    plan.communicators(int(own.command->collective().communicator())).name() + " is entered by queue " +
                    role.queues(int(own.queue)).name() + " and by queue " + role.queues(int(first.queue)).name() +
                    ", so the order of its collectives depends on timing",
                placeOf(plan, program, first) + " enters it on the other queue"};
}

/// What two roles pass to each other where they meet.
void meet(JointTimeline &joint, const Step &a, const Step &b) {
  const Instance &own = joint.timelines[a.role].instances[a.instance];
  const Instance &theirs = joint.timelines[b.role].instances[b.instance];
  if (own.command->has_send()) {
    joint.senders.try_emplace(b, a); // of several that send, all send the same
  } else if (own.command->has_collective()) {
    joint.meetings[a][b.role] = theirs;
    joint.meetings[b][a.role] = own;
  }
}

/// Ties the roles of a run together: the k-th collective of a communicator, or message of a channel, that a role comes
/// to is the k-th of every role that it meets there. That these are the same, plan::validatePlan has seen.
void findMeetings(const proto::Plan &plan, const std::string &program, plan::RolePeers &peers, JointTimeline &joint) {
  std::map<uint32_t, std::map<int, std::vector<Step>>> communicators, channels; // what roles come to
  for (const Step &step : joint.order) {
    const Instance &instance = joint.timelines[step.role].instances[step.instance];
    const proto::Command &command = *instance.command;
    if (command.has_collective()) {
      std::vector<Step> &own = communicators[command.collective().communicator()][int(step.role)];
      own.push_back(step);
      requireOneQueue(plan, program, joint.timelines[step.role].instances[own[0].instance], instance);
    } else if (command.has_send() || command.has_receive()) {
      channels[command.has_send() ? command.send().channel() : command.receive().channel()][int(step.role)].push_back(
          step);
    }
  }
  const auto meetAll = [&](std::map<int, std::vector<Step>> &steps, const plan::RolePairs &pairs) {
    for (const auto &[a, b] : pairs)
      for (size_t k = 0; a != b && k < std::min(steps[a].size(), steps[b].size()); ++k)
        meet(joint, steps[a][k], steps[b][k]);
  };
  for (auto &[index, steps] : communicators)
    meetAll(steps, peers.inCommunicator(index));
  for (auto &[index, steps] : channels)
    meetAll(steps, peers.onChannel(index));
}

} // namespace

JointTimeline recordTimeline(const proto::Plan &plan, const std::string &program, bool withTail) {
  plan::RolePeers peers(plan);
  TimelineRecorder recorder(plan, program);
  if (const std::optional<plan::Deadlock> deadlock = plan::simulate(plan, program, peers, &recorder, withTail))
    recorder.refuse(*deadlock);
  JointTimeline joint = recorder.take();
  findMeetings(plan, program, peers, joint);
  return joint;
}

std::set<Meeting> meetingsOf(const JointTimeline &joint) {
  std::set<Meeting> meetings;
  const auto add = [&](const Instance &a, const Instance &b) {
    meetings.insert({a.role, a.routine, int64_t(a.index), b.role, b.routine, int64_t(b.index),
                     int64_t(a.microbatch) - int64_t(b.microbatch)});
  };
  const auto at = [&](const Step &step) { return joint.timelines[step.role].instances[step.instance]; };
  for (const auto &[receive, send] : joint.senders)
    add(at(receive), at(send));
  for (const auto &[step, others] : joint.meetings)
    for (const auto &[role, other] : others)
      add(at(step), other);
  return meetings;
}

const proto::Program *programNamed(const proto::Role &role, const std::string &name) {
  const auto own = std::ranges::find_if(role.programs(), [&](const proto::Program &one) { return one.name() == name; });
  return own == role.programs().end() ? nullptr : &*own;
}

} // namespace ds::check
