//===- RoleSchedule.cpp - what a role runs when, for all of its ranks -----===//
#include "compiler/check/schedule/RoleSchedule.h"

namespace ds::check {

RoleSchedule::RoleSchedule(const proto::Role &role, const proto::Program &program, const Timeline &timeline) {
  for (const Instance &instance : timeline.instances)
    if (isOptimizer(*instance.command)) {
      const auto &operands = instance.command->kernel().operands();
      if (const proto::Buffer &parameters = role.buffers(int(operands[0].buffer())); parameters.has_bucket())
        bucketOf[operands[1].buffer()] = parameters.bucket();
    }
  for (int c = 0; c < program.calls_size(); ++c) {
    const uint32_t routine = program.calls(c).routine();
    firstCall.try_emplace(routine, uint32_t(c));
    calls.try_emplace({routine, program.calls(c).microbatch()}, uint32_t(c), uint32_t(c)).first->second.second =
        uint32_t(c);
    lastCall[routine] = uint32_t(c);
    instanceOf.emplace_back(size_t(role.routines(int(routine)).commands_size()));
  }
  effects.reserve(timeline.instances.size());
  for (size_t i = 0; i < timeline.instances.size(); ++i) {
    instanceOf[timeline.instances[i].call][timeline.instances[i].index] = i;
    effects.push_back(effectsOf(*timeline.instances[i].command));
  }
}

} // namespace ds::check
