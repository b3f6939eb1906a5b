//===- RoleSchedule.cpp - what a role runs when, for all of its ranks -----===//
#include "compiler/check/schedule/RoleSchedule.h"

#include <set>

namespace ds::check {

namespace {

std::map<uint32_t, uint32_t> writtenNexts(const proto::Role &role, const proto::Program &program) {
  std::set<uint32_t> routines;
  for (const proto::Call &call : program.calls())
    routines.insert(call.routine());
  std::map<uint32_t, uint32_t> nexts;
  for (const uint32_t routine : routines)
    for (const proto::Command &command : role.routines(int(routine)).commands())
      for (const Effect &effect : effectsOf(command))
        if (const proto::Buffer &buffer = role.buffers(int(effect.operand->buffer()));
            effect.writes && buffer.has_next_of())
          nexts[buffer.next_of()] = effect.operand->buffer();
  return nexts;
}

} // namespace

RoleSchedule::RoleSchedule(const proto::Role &role, const proto::Program &program, const Timeline &timeline)
    : nexts(writtenNexts(role, program)) {
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
