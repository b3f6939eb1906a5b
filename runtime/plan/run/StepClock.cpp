//===- StepClock.cpp - when each command of a step runs, on a simulated clock ===//
#include "runtime/plan/run/StepClock.h"

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/Tail.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace ds::plan {
namespace {

using proto::Command;
using proto::Program;
using proto::Role;

/// One execution of one command, and whom it waits for.
struct Node {
  TimedCommand timed;
  uint64_t microbatch = 0;
  std::vector<size_t> before; // nodes whose ends let it start
};

/// An event has a new value since the end of a node.
struct Raise {
  uint64_t value = 0;
  size_t node = 0;
};

class Clock {
public:
  explicit Clock(const Role &role) : queues_(size_t(role.queues_size())), events_(size_t(role.events_size())) {
    for (const Program &program : role.programs())
      for (int call = 0; program.name() == "step" && call < int(callsBeforeTail(program).size()); ++call)
        add(role, program.calls(call), call);
  }

  std::vector<TimedCommand> run(const SecondsOf &secondsOf) {
    startQueues(0, secondsOf);
    while (!running_.empty()) {
      const auto [now, node] = *running_.begin();
      running_.erase(running_.begin());
      finish(node);
      startQueues(now, secondsOf);
    }
    findLatestEnds();
    std::vector<TimedCommand> result;
    for (size_t node : started_)
      result.push_back(nodes_[node].timed);
    return result;
  }

private:
  struct Queue {
    std::vector<size_t> nodes; // in issue order
    size_t next = 0;
    bool busy = false;
  };

  void add(const Role &role, const proto::Call &call, int number) {
    const auto &commands = role.routines(int(call.routine())).commands();
    for (int i = 0; i < commands.size(); ++i) {
      queues_[commands[i].queue()].nodes.push_back(nodes_.size());
      nodes_.push_back(
          {.timed = {.command = &commands[i], .call = number, .index = i}, .microbatch = call.microbatch()});
    }
  }

  void startQueues(double now, const SecondsOf &secondsOf) {
    for (Queue &queue : queues_) {
      if (queue.busy || queue.next == queue.nodes.size())
        continue;
      const size_t node = queue.nodes[queue.next];
      std::optional<std::vector<size_t>> before = raisersOf(nodes_[node]);
      if (!before)
        continue;
      if (queue.next > 0)
        before->push_back(queue.nodes[queue.next - 1]);
      TimedCommand &timed = nodes_[node].timed;
      timed.start = now;
      timed.end = now + secondsOf(timed);
      nodes_[node].before = *std::move(before);
      queue.busy = true;
      started_.push_back(node);
      running_.insert({timed.end, node});
    }
  }

  /// Who raised the events that a node waits for high enough, or nothing while some are too low.
  std::optional<std::vector<size_t>> raisersOf(const Node &node) const {
    std::vector<size_t> raisers;
    for (const proto::Wait &wait : node.timed.command->waits()) {
      if (wait.delay() > node.microbatch)
        continue;
      const uint64_t wanted = node.microbatch + 1 - wait.delay();
      const std::vector<Raise> &raises = events_[wait.event()];
      const auto first = std::ranges::lower_bound(raises, wanted, {}, &Raise::value);
      if (first == raises.end())
        return std::nullopt;
      raisers.push_back(first->node);
    }
    return raisers;
  }

  void finish(size_t node) {
    const Command &command = *nodes_[node].timed.command;
    queues_[command.queue()].busy = false;
    ++queues_[command.queue()].next;
    for (uint32_t event : command.signals())
      if (const uint64_t value = nodes_[node].microbatch + 1;
          events_[event].empty() || events_[event].back().value < value)
        events_[event].push_back({value, node});
  }

  /// From the last that started to the first: who waits for a command started after it.
  void findLatestEnds() {
    double last = 0;
    for (const Node &node : nodes_)
      last = std::max(last, node.timed.end);
    for (Node &node : nodes_)
      node.timed.latestEnd = last;
    for (size_t i = started_.size(); i-- > 0;) {
      TimedCommand &timed = nodes_[started_[i]].timed;
      timed.latestEnd = std::max(timed.latestEnd, timed.end); // sums round
      const double latestStart = timed.start + (timed.latestEnd - timed.end);
      for (size_t before : nodes_[started_[i]].before)
        nodes_[before].timed.latestEnd = std::min(nodes_[before].timed.latestEnd, latestStart);
    }
  }

  std::vector<Node> nodes_;
  std::vector<Queue> queues_;
  std::vector<std::vector<Raise>> events_;      // rising
  std::set<std::pair<double, size_t>> running_; // by end
  std::vector<size_t> started_;
};

} // namespace

std::vector<TimedCommand> timeStep(const Role &role, const SecondsOf &secondsOf) { return Clock(role).run(secondsOf); }

double lastEnd(std::span<const TimedCommand> commands) {
  double last = 0;
  for (const TimedCommand &timed : commands)
    last = std::max(last, timed.end);
  return last;
}

} // namespace ds::plan
