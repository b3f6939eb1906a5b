//===- Simulator.cpp - a run of a program, without its work ---------------===//
#include "runtime/plan/run/Simulator.h"

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/Tail.h"
#include "runtime/plan/world/RolePeers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::plan {
namespace {

/// A queue of a role.
struct QueueId {
  uint32_t role, queue;
  auto operator<=>(const QueueId &) const = default;
};

/// A role at a channel, or at a communicator on one kind of queue.
struct End {
  uint32_t role = 0;
  uint64_t arrived = 0, departed = 0; // messages or collectives that the role has come to, and gone on from
  std::vector<End *> peers;           // of the other roles that it meets there
  std::vector<QueueId> sleepers;      // whoever waits for one of the two numbers
};

/// A command that a queue executes.
struct Listed {
  uint32_t index;
  End *end; // of a rendezvous, or nullptr
};

/// Where a queue stands.
struct Cursor {
  int call = 0;
  size_t next = 0;      // in the list of the call's routine
  bool arrived = false; // at the rendezvous that is next
  uint64_t executed = 0;
};

struct RoleRun {
  const proto::Role *role = nullptr;
  const proto::Program *program = nullptr;
  int calls = 0;                          // of the program, that are made
  std::vector<std::vector<Listed>> lists; // by routine and queue
  std::vector<Cursor> cursors;            // by queue
  std::vector<uint64_t> events;
  std::vector<std::vector<uint32_t>> sleepers; // by event: queues that it holds back

  const std::vector<Listed> &list(uint32_t routine, uint32_t queue) const {
    return lists[size_t(routine) * cursors.size() + queue];
  }
};

class Simulator {
public:
  Simulator(const proto::Plan &plan, const std::string &program, RolePeers &peers, RunObserver *observer, bool withTail)
      : plan_(plan), peers_(peers), observer_(observer), roles_(size_t(plan.roles_size())) {
    for (uint32_t r = 0; r < roles_.size(); ++r)
      prepare(r, program, withTail);
    findPeers();
  }

  /// Queues are tried in the order of roles and queues, round and round.
  std::optional<Deadlock> run() {
    for (uint32_t r = 0; r < roles_.size(); ++r)
      for (uint32_t queue = 0; roles_[r].program != nullptr && queue < roles_[r].cursors.size(); ++queue)
        ready_.insert({r, queue});
    for (auto next = ready_.begin(); next != ready_.end();) {
      const QueueId id = *next;
      ready_.erase(next);
      advance(id);
      next = ready_.upper_bound(id);
      next = next == ready_.end() ? ready_.begin() : next;
    }
    return deadlock();
  }

private:
  void prepare(uint32_t r, const std::string &name, bool withTail) {
    RoleRun &run = roles_[r];
    run.role = &plan_.roles(int(r));
    for (const proto::Program &program : run.role->programs())
      if (program.name() == name) {
        run.program = &program;
        run.calls = withTail ? program.calls_size() : int(callsBeforeTail(program).size());
      }
    run.lists.resize(size_t(run.role->routines_size()) * size_t(run.role->queues_size()));
    run.cursors.resize(size_t(run.role->queues_size()));
    run.events.resize(size_t(run.role->events_size()));
    run.sleepers.resize(size_t(run.role->events_size()));
    for (int i = 0; i < run.role->routines_size(); ++i)
      for (int c = 0; c < run.role->routines(i).commands_size(); ++c) {
        const proto::Command &command = run.role->routines(i).commands(c);
        End *end = endOf(r, command);
        if (end != nullptr || observer_ != nullptr || command.waits_size() > 0 || command.signals_size() > 0)
          run.lists[size_t(i) * run.cursors.size() + command.queue()].push_back({uint32_t(c), end});
      }
  }

  /// Role, channel or -1, communicator, kind of queue: roles that share a communicator may number queues differently.
  using EndKey = std::array<int, 4>;

  End *endOf(uint32_t role, const proto::Command &command) {
    if (command.has_send() || command.has_receive())
      return &endOf(
          {int(role), int(command.has_send() ? command.send().channel() : command.receive().channel()), 0, 0});
    if (!command.has_collective())
      return nullptr;
    return &endOf({int(role), -1, int(command.collective().communicator()),
                   plan_.roles(int(role)).queues(int(command.queue())).kind()});
  }

  End &endOf(const EndKey &key) {
    End &end = ends_[key];
    end.role = uint32_t(key[0]);
    return end;
  }

  /// Ties ends to those of the other roles there, even of one that never comes.
  void findPeers() {
    std::vector<EndKey> keys;
    for (const auto &[key, end] : ends_)
      keys.push_back(key);
    for (const EndKey &key : keys) {
      const auto &[role, channel, communicator, kind] = key;
      const RolePairs &pairs =
          channel >= 0 ? peers_.onChannel(uint32_t(channel)) : peers_.inCommunicator(uint32_t(communicator));
      for (const auto &[a, b] : pairs)
        if (a != b && (a == role || b == role))
          ends_[key].peers.push_back(&endOf({a == role ? b : a, channel, communicator, kind}));
    }
  }

  Instance instanceAt(QueueId id) const {
    const RoleRun &run = roles_[id.role];
    const Cursor &cursor = run.cursors[id.queue];
    const proto::Call &call = run.program->calls(cursor.call);
    const uint32_t index = run.list(call.routine(), id.queue)[cursor.next].index;
    return {&run.role->routines(int(call.routine())).commands(int(index)),
            id.role,
            uint32_t(cursor.call),
            call.routine(),
            index,
            id.queue,
            call.microbatch(),
            cursor.executed + 1};
  }

  End *endAt(QueueId id) const {
    const RoleRun &run = roles_[id.role];
    const Cursor &cursor = run.cursors[id.queue];
    return run.list(run.program->calls(cursor.call).routine(), id.queue)[cursor.next].end;
  }

  /// The event that holds an instance back, or nullptr.
  const proto::Wait *blocker(const Instance &instance) const {
    for (const proto::Wait &wait : instance.command->waits())
      if (roles_[instance.role].events[wait.event()] + wait.delay() < instance.microbatch + 1)
        return &wait;
    return nullptr;
  }

  /// Who has not come to the rendezvous of an end yet, or, to a receiver, not sent; or nullptr.
  static End *absent(const End &end, const proto::Command &command) {
    for (End *peer : end.peers)
      if (peer->arrived <= end.departed || (command.has_receive() && peer->departed <= end.departed))
        return peer;
    return nullptr;
  }

  void advance(QueueId id) {
    RoleRun &run = roles_[id.role];
    Cursor &cursor = run.cursors[id.queue];
    for (; cursor.call < run.calls; ++cursor.call, cursor.next = 0)
      while (cursor.next < run.list(run.program->calls(cursor.call).routine(), id.queue).size()) {
        const Instance instance = instanceAt(id);
        if (const proto::Wait *wait = blocker(instance)) {
          run.sleepers[wait->event()].push_back(id.queue);
          return;
        }
        if (End *end = endAt(id); end != nullptr && !pass(*end, id, instance))
          return;
        if (observer_ != nullptr)
          observer_->executed(instance);
        for (uint32_t event : instance.command->signals())
          raise(id.role, event, instance.microbatch + 1);
        ++cursor.next;
        ++cursor.executed;
        cursor.arrived = false;
      }
  }

  /// Whether all have come; if not, the queue sleeps until the next has.
  bool pass(End &end, QueueId id, const Instance &instance) {
    if (!std::exchange(roles_[id.role].cursors[id.queue].arrived, true)) {
      ++end.arrived;
      wake(end);
    }
    if (End *peer = absent(end, *instance.command)) {
      peer->sleepers.push_back(id);
      return false;
    }
    ++end.departed;
    wake(end);
    return true;
  }

  void wake(End &end) {
    ready_.insert(end.sleepers.begin(), end.sleepers.end());
    end.sleepers.clear();
  }

  void raise(uint32_t role, uint32_t event, uint64_t value) {
    RoleRun &run = roles_[role];
    run.events[event] = std::max(run.events[event], value);
    for (uint32_t queue : run.sleepers[event])
      ready_.insert({role, queue});
    run.sleepers[event].clear();
  }

  bool isStuck(QueueId id) const {
    const RoleRun &run = roles_[id.role];
    return run.program != nullptr && run.cursors[id.queue].call < run.calls;
  }

  /// A stuck queue of a role that has a command for which `holds`, or nothing.
  template <typename Holds> std::optional<QueueId> stuckQueue(uint32_t role, Holds holds) const {
    const RoleRun &run = roles_[role];
    for (size_t i = 0; i < run.lists.size(); ++i)
      if (const QueueId id{role, uint32_t(i % run.cursors.size())}; isStuck(id))
        for (const Listed &listed : run.lists[i])
          if (holds(run.role->routines(int(i / run.cursors.size())).commands(int(listed.index)), listed))
            return id;
    return std::nullopt;
  }

  /// The queue that one which is stuck waits for, if that is stuck too.
  std::optional<QueueId> heldBackBy(QueueId id) const {
    const Instance instance = instanceAt(id);
    if (const proto::Wait *wait = blocker(instance))
      return stuckQueue(id.role, [&](const proto::Command &command, const Listed &) {
        return std::ranges::find(command.signals(), wait->event()) != command.signals().end();
      });
    const End *peer = absent(*endAt(id), *instance.command);
    return stuckQueue(peer->role, [&](const proto::Command &, const Listed &listed) { return listed.end == peer; });
  }

  /// Goes from a stuck queue to the one that it waits for, until that is nobody or they are a circle.
  std::optional<Deadlock> deadlock() const {
    std::optional<QueueId> stuck;
    for (uint32_t r = 0; r < roles_.size() && !stuck; ++r)
      stuck = stuckQueue(r, [](const proto::Command &, const Listed &) { return true; });
    if (!stuck)
      return std::nullopt;
    std::set<QueueId> seen;
    std::optional<QueueId> meeting;
    for (std::optional<QueueId> next = stuck; next; next = heldBackBy(*next)) {
      stuck = next;
      if (!seen.insert(*stuck).second) {
        stuck = meeting.value_or(*stuck);
        break;
      }
      if (blocker(instanceAt(*stuck)) == nullptr)
        meeting = stuck;
    }
    return deadlockAt(*stuck);
  }

  Deadlock deadlockAt(QueueId id) const {
    Deadlock found{instanceAt(id), nullptr, 0, 0, std::nullopt};
    if (const std::optional<QueueId> other = heldBackBy(id))
      found.heldBack = instanceAt(*other);
    found.wait = blocker(found.instance);
    if (found.wait != nullptr) {
      found.value = roles_[id.role].events[found.wait->event()];
      found.wanted = found.instance.microbatch + 1 - found.wait->delay();
    } else {
      found.value = absent(*endAt(id), *found.instance.command)->arrived;
      found.wanted = endAt(id)->arrived;
    }
    return found;
  }

  const proto::Plan &plan_;
  RolePeers &peers_;
  RunObserver *const observer_;
  std::vector<RoleRun> roles_;
  std::map<EndKey, End> ends_; // which point to each other
  std::set<QueueId> ready_;
};

} // namespace

std::optional<Deadlock> simulate(const proto::Plan &plan, const std::string &program, RolePeers &peers,
                                 RunObserver *observer, bool withTail) {
  return Simulator(plan, program, peers, observer, withTail).run();
}

} // namespace ds::plan
