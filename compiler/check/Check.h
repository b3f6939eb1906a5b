//===- Check.h - the independent checker of finished plans ----------------===//
//
// Reads plan.proto of all roles and nothing else, and shares no code with the passes that made it: what a pass got
// wrong is seen here from the outside. docs/checker.md says what is proven, and why one rank of a role speaks for all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/CommandName.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::check {

/// A rule that a plan breaks, with the counterexample.
struct Finding {
  std::string rule;     ///< "progress", "race", "value", "coverage", "meaning", "numerics" or "memory"
  std::string sentence; ///< names the place first; a second place is a note below
  std::string place;    ///< program, call, routine, command, rank; empty: the whole plan
  std::vector<plan::CommandPlace> places; ///< for pictures: that command, and the other where the rule is about two
};

/// Closed: a plan has a reference program, and what no rule speaks of is refused. Open, for plans by hand: kernels may
/// name no op, and their calls are not checked.
enum class World { Closed, Open };

/// What the first ranks of all roles write and nothing is known of.
struct Unknown {
  uint64_t commands = 0, bytes = 0; ///< once for each command of a program
};

/// The first rule that `plan` breaks, or nothing. The plan must have passed plan::validatePlan.
///
/// progress: every queue of every role comes to the end of every program, whatever the timing.
///
/// race: accesses of the same bytes, one of them a write, are ordered by queues and events.
///
/// value: what is read was written before, into the same buffer, for the same micro-batch, and is still there.
///
/// coverage: every variable lies in one place; every gradient holds each micro-batch of each rank once when it is used;
/// every trained element is updated once, and is whole again at the end of the step.
///
/// meaning: every kernel command computes what the reference op that it names says, or follows a rule of its own.
///
/// numerics: a plan that says it is bit-equal sums gradients in the order of one rank.
///
/// memory: no two live buffers share bytes, and what the arenas of a space need is there on the machine.
std::optional<Finding> checkPlan(const plan::proto::Plan &plan, World world = World::Closed,
                                 Unknown *unknown = nullptr);

/// The same, but repetitions of micro-batches are all followed; slow. What checkPlan leaves out of them changes no
/// verdict, which test/unit/check/ShortenTest.cpp holds it to.
std::optional<Finding> checkWholePlan(const plan::proto::Plan &plan, World world = World::Closed);

} // namespace ds::check
