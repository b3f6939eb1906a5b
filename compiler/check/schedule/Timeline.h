//===- Timeline.h - what happens when in a run, and before what -----------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/Simulator.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace ds::check {

namespace proto = plan::proto;

using plan::Instance;

/// What one rank of a role executes in one program, in an order that happens, and what must have happened before what.
class Timeline {
public:
  std::vector<Instance> instances;

  /// By queue: how many commands of it have surely finished when `instance` starts. A vector clock (Mattern, 1989).
  std::span<const uint64_t> before(size_t instance) const { return {clocks_.data() + instance * queues_, queues_}; }
  /// Whether the command at `position` of `queue` has surely finished when `instance` starts.
  bool isBefore(uint32_t queue, uint64_t position, size_t instance) const {
    return before(instance)[queue] >= position;
  }

private:
  friend class TimelineRecorder;
  size_t queues_ = 0;
  std::vector<uint64_t> clocks_;
};

/// "program step, call 3 (routine forward, micro-batch 1), command 7 (matmul of h.0/attn)".
std::string placeOf(const proto::Plan &plan, const std::string &program, const Instance &instance);

/// One instance of one role.
struct Step {
  uint32_t role = 0;
  size_t instance = 0;
  auto operator<=>(const Step &) const = default;
};

/// A run of a program by all roles.
struct JointTimeline {
  std::vector<Timeline> timelines; ///< by role; empty for one that does not have the program
  std::vector<Step> order;         ///< of all instances, an order that happens: a message is sent before it is received
  std::map<Step, Step> senders;    ///< by receive: where its message came from
  /// By collective that ranks of several roles enter: what each of the other roles enters, when it has reached it.
  std::map<Step, std::map<uint32_t, Instance>> meetings;
};

/// Which commands of two roles meet, and how many micro-batches one is ahead of the other: role, routine and command of
/// each, then the difference.
using Meeting = std::array<int64_t, 7>;
std::set<Meeting> meetingsOf(const JointTimeline &joint);

/// Simulates `program` for all roles at once, without its tail if so asked. What is in the tail comes last in the
/// order. Refuses ("progress") a program that gets stuck, communicators that a role enters from two queues, and events
/// that two queues signal: which of the two comes first would be a matter of timing.
JointTimeline recordTimeline(const proto::Plan &plan, const std::string &program, bool withTail = true);

/// The role's program of that name, or nullptr.
const proto::Program *programNamed(const proto::Role &role, const std::string &name);

} // namespace ds::check
