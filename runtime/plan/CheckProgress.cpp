//===- CheckProgress.cpp - every run of every program comes to its end ----===//
//
// Plays a run without doing anything: queues take their commands in order, waits look at counters, signals raise them.
// Counters only rise, so a wait that holds once holds for ever and the order in which queues are tried does not matter:
// if this run gets stuck, every run does, and if it ends, every run does. Linear in the commands that wait or signal.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanChecks.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ds::plan {
namespace {

/// Where a queue stands in a run: the next of its commands that wait or signal.
struct Cursor {
  int call = 0;
  size_t stop = 0;
};

class Run {
public:
  Run(const proto::Role &role, const proto::Program &program)
      : role_(role), program_(program), stops_(size_t(role.routines_size() * role.queues_size())),
        cursors_(size_t(role.queues_size())), events_(size_t(role.events_size())),
        sleepers_(size_t(role.events_size())) {
    for (int r = 0; r < role.routines_size(); ++r)
      for (int c = 0; c < role.routines(r).commands_size(); ++c) {
        const proto::Command &command = role.routines(r).commands(c);
        if (command.waits_size() > 0 || command.signals_size() > 0)
          stops_[size_t(r * role.queues_size()) + command.queue()].push_back(c);
      }
  }

  /// Goes as far as it goes; throws when that is not the end.
  void play() {
    for (uint32_t queue = 0; queue < cursors_.size(); ++queue)
      ready_.push_back(queue);
    while (!ready_.empty()) {
      const uint32_t queue = ready_.back();
      ready_.pop_back();
      advance(queue);
    }
    for (uint32_t queue = 0; queue < cursors_.size(); ++queue)
      if (cursors_[queue].call < program_.calls_size())
        refuseStuck(queue);
  }

private:
  uint64_t microbatch(const Cursor &cursor) const { return program_.calls(cursor.call).microbatch(); }

  const std::vector<int> &stops(const Cursor &cursor, uint32_t queue) const {
    return stops_[size_t(program_.calls(cursor.call).routine()) * cursors_.size() + queue];
  }

  const proto::Command &command(const Cursor &cursor, uint32_t queue) const {
    return role_.routines(int(program_.calls(cursor.call).routine())).commands(stops(cursor, queue)[cursor.stop]);
  }

  /// What holds the queue back, or nullptr.
  const proto::Wait *blocker(const Cursor &cursor, uint32_t queue) const {
    for (const proto::Wait &wait : command(cursor, queue).waits())
      if (events_[wait.event()] + wait.delay() < microbatch(cursor) + 1)
        return &wait;
    return nullptr;
  }

  void advance(uint32_t queue) {
    Cursor &cursor = cursors_[queue];
    for (; cursor.call < program_.calls_size(); ++cursor.call, cursor.stop = 0)
      for (; cursor.stop < stops(cursor, queue).size(); ++cursor.stop) {
        if (const proto::Wait *wait = blocker(cursor, queue)) {
          sleepers_[wait->event()].push_back(queue);
          return;
        }
        for (uint32_t event : command(cursor, queue).signals())
          raise(event, microbatch(cursor) + 1);
      }
  }

  void raise(uint32_t event, uint64_t value) {
    events_[event] = std::max(events_[event], value);
    ready_.insert(ready_.end(), sleepers_[event].begin(), sleepers_[event].end());
    sleepers_[event].clear();
  }

  [[noreturn]] void refuseStuck(uint32_t queue) const {
    const Cursor &cursor = cursors_[queue];
    const proto::Wait &wait = *blocker(cursor, queue);
    const uint32_t routine = program_.calls(cursor.call).routine();
    refuse("program " + program_.name() + ", call " + std::to_string(cursor.call) + " (" +
               describe("routine", routine, role_.routines(int(routine)).name()) + ", micro-batch " +
               std::to_string(microbatch(cursor)) + "), command " + std::to_string(stops(cursor, queue)[cursor.stop]),
           "queue " + role_.queues(int(queue)).name() + " would wait for ever for " +
               describe("event", wait.event(), role_.events(int(wait.event())).name()) + " to reach " +
               std::to_string(microbatch(cursor) + 1 - wait.delay()) + "; it stays at " +
               std::to_string(events_[wait.event()]));
  }

  const proto::Role &role_;
  const proto::Program &program_;
  std::vector<std::vector<int>> stops_; // by routine and queue: commands that wait or signal
  std::vector<Cursor> cursors_;         // by queue
  std::vector<uint64_t> events_;
  std::vector<std::vector<uint32_t>> sleepers_; // queues that an event holds back
  std::vector<uint32_t> ready_;
};

} // namespace

void checkProgress(const proto::Role &role) {
  for (const proto::Program &program : role.programs())
    Run(role, program).play();
}

} // namespace ds::plan
