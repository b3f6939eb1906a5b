//===- Replay.cpp - what a run does to memory -----------------------------===//
#include "compiler/check/Replay.h"

#include "compiler/check/RankReplay.h"
#include "compiler/check/TailRules.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ds::check {

std::optional<uint32_t> replay(const proto::Plan &plan, Meaning &meaning, const std::string &program,
                               const JointTimeline &joint, std::optional<uint32_t> one) {
  const StateChanges changes(plan, meaning.values(), program);
  Messages messages;
  std::vector<RoleSchedule> schedules;
  std::vector<RoleContext> contexts;
  std::vector<std::unique_ptr<RankMemory>> memories;
  std::vector<RankReplay> replays;
  schedules.reserve(size_t(plan.roles_size())); // contexts point to them
  for (uint32_t r = 0; r < uint32_t(plan.roles_size()); ++r) {
    const proto::Role &role = plan.roles(int(r));
    const proto::Program *own = programNamed(role, program);
    if (!own)
      throw Refusal{"progress", "role " + role.name() + " has no program " + program +
                                    ", but other roles have; ranks run a program together"};
    schedules.emplace_back(role, *own, joint.timelines[r]);
    contexts.push_back({plan, meaning, changes, joint, messages, memories, r, *own, schedules.back(), one});
    memories.push_back(std::make_unique<RankMemory>(contexts.back()));
    replays.emplace_back(*memories.back());
  }
  const auto tail = std::ranges::find_if(joint.order, [&](const Step &step) {
    return contexts[step.role].isInTail(joint.timelines[step.role].instances[step.instance].call);
  });
  for (auto step = joint.order.begin(); step != tail; ++step)
    replays[step->role].execute(step->instance);
  const std::optional<uint32_t> factor = one ? one : requireFactor(memories);
  for (auto step = tail; step != joint.order.end(); ++step)
    replays[step->role].execute(step->instance);
  for (RankReplay &replay : replays)
    replay.finish();
  return factor;
}

} // namespace ds::check
