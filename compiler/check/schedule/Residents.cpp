//===- Residents.cpp - what outlives a run has bytes of its own -----------===//
#include "compiler/check/schedule/Residents.h"

#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Refusal.h"
#include "core/IntervalMap.h"
#include "runtime/plan/run/ProgramLives.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ds::check {

namespace {

/// One copy of a buffer.
struct Slot {
  uint32_t arena;
  uint64_t begin, end;
  uint32_t buffer, slot;
  bool resident; ///< of scope PLAN
};

/// Of buffers that commands use, or that outlive a run; these first.
std::vector<Slot> slotsOf(const proto::Role &role) {
  std::set<uint32_t> used;
  for (const proto::Routine &routine : role.routines())
    for (const proto::Command &command : routine.commands())
      for (const Effect &effect : effectsOf(command))
        used.insert(effect.operand->buffer());
  std::vector<Slot> slots;
  for (uint32_t b = 0; b < uint32_t(role.buffers_size()); ++b) {
    const proto::Buffer &buffer = role.buffers(int(b));
    const bool resident = buffer.scope() == proto::Buffer::PLAN;
    for (uint32_t s = 0; s < buffer.slots() && buffer.bytes() > 0 && (resident || used.contains(b)); ++s)
      slots.push_back(
          {buffer.arena(), plan::slotOffset(buffer, s), plan::slotOffset(buffer, s) + buffer.bytes(), b, s, resident});
  }
  std::ranges::stable_partition(slots, &Slot::resident);
  return slots;
}

} // namespace

void checkResidents(const proto::Role &role) {
  const auto nameOf = [&](const Slot &one) {
    const proto::Buffer &buffer = role.buffers(int(one.buffer));
    return (buffer.slots() > 1 ? "slot " + std::to_string(one.slot) + " of buffer " : "buffer ") +
           std::to_string(one.buffer) + " (" + buffer.name() + ") at bytes " + std::to_string(one.begin) + " to " +
           std::to_string(one.end - 1);
  };
  std::map<uint32_t, IntervalMap<const Slot *>> taken; // by arena
  const std::vector<Slot> slots = slotsOf(role);
  for (const Slot &slot : slots) {
    IntervalMap<const Slot *> &arena = taken[slot.arena];
    arena.touching(slot.begin, slot.end, [&](uint64_t, uint64_t, const Slot *other) {
      throw Refusal{"memory", "role " + role.name() + ": " + nameOf(slot) + " takes bytes of " + nameOf(*other) +
                                  ", which is alive always"};
    });
    if (slot.resident)
      arena.assign(slot.begin, slot.end, &slot);
  }
}

} // namespace ds::check
