//===- UsedLives.h - lives of buffers as a plan by hand uses them ------------===//
#pragma once

#include "compiler/check/schedule/Effects.h"

#include <cstdint>
#include <map>

namespace ds::test {

namespace proto = plan::proto;

/// Gives each buffer of a role that does not outlive a run the life, in program 0, from the first command that uses it
/// to the last. Routines stand in the order in which they are called.
inline void setLivesAsUsed(proto::Role &role) {
  std::map<uint32_t, proto::Life> lives; // by buffer
  for (uint32_t r = 0; r < uint32_t(role.routines_size()); ++r)
    for (int i = 0; i < role.routines(int(r)).commands_size(); ++i)
      for (const check::Effect &effect : check::effectsOf(role.routines(int(r)).commands(i))) {
        const auto [life, isNew] = lives.try_emplace(effect.operand->buffer());
        if (isNew) {
          life->second.set_birth_routine(r);
          life->second.set_birth_command(uint32_t(i));
        }
        life->second.set_death_routine(r);
        life->second.set_death_command(uint32_t(i));
      }
  for (uint32_t b = 0; b < uint32_t(role.buffers_size()); ++b) {
    proto::Buffer &buffer = *role.mutable_buffers(int(b));
    buffer.clear_lives();
    if (buffer.scope() != proto::Buffer::PLAN && lives.contains(b))
      *buffer.add_lives() = lives.at(b);
  }
}

} // namespace ds::test
