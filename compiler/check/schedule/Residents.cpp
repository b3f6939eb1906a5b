//===- Residents.cpp - what outlives a run has bytes of its own -----------===//
#include "compiler/check/schedule/Residents.h"

#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Refusal.h"
#include "runtime/plan/ProgramLives.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
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
  std::ranges::sort(slots, {}, [](const Slot &one) { return std::tuple(one.arena, one.begin, one.buffer, one.slot); });
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
  // In the order of addresses it is enough to keep the copy of each sort that reaches furthest.
  const Slot *furthest[2] = {nullptr, nullptr}; // by whether it is resident
  const std::vector<Slot> slots = slotsOf(role);
  for (const Slot &slot : slots) {
    for (const Slot *other : furthest)
      if (other && (slot.resident || other->resident) && other->arena == slot.arena && other->end > slot.begin)
        throw Refusal{"memory", "role " + role.name() + ": " + nameOf(slot.resident ? *other : slot) +
                                    " takes bytes of " + nameOf(slot.resident ? slot : *other) +
                                    ", which is alive always"};
    const Slot *&own = furthest[slot.resident];
    if (!own || own->arena != slot.arena || own->end < slot.end)
      own = &slot;
  }
}

} // namespace ds::check
