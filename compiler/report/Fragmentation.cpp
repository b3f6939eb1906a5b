//===- Fragmentation.cpp - bytes of an arena that hold nothing at the peak --===//
//
// Buffers claim addresses for a reason: a copy is alive, its end is not aligned, its slots wait for a message or
// a micro-batch. An
// address counts for the first of these reasons that claims it; what nothing claims is a gap.
//
//===----------------------------------------------------------------------===//
#include "compiler/report/Fragmentation.h"

#include "compiler/report/PeakMemory.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/ProgramLives.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Buffer;
using plan::proto::Role;

enum Reason : uint8_t { Alive, Alignment, MessageSlot, IdleSlot, reasons };

/// A claim on bytes of one arena begins or ends.
struct Edge {
  uint32_t arena;
  uint64_t address;
  Reason reason;
  int change; // +1, -1
};

class Claims {
public:
  Claims(const Role &role, uint64_t alignment) : role_(role), alignment_(std::max<uint64_t>(alignment, 1)) {}

  void addAlive(const Buffer &buffer, uint32_t slot) {
    const uint64_t begin = plan::slotOffset(buffer, slot), end = begin + buffer.bytes();
    claim(buffer.arena(), begin, end, Alive);
    claim(buffer.arena(), end, (end + alignment_ - 1) / alignment_ * alignment_, Alignment);
  }

  void addSlots(const Buffer &buffer, Reason reason) {
    for (uint32_t slot = 0; slot < buffer.slots(); ++slot) {
      const uint64_t begin = plan::slotOffset(buffer, slot);
      claim(buffer.arena(), begin, (begin + buffer.bytes() + alignment_ - 1) / alignment_ * alignment_, reason);
    }
  }

  /// Bytes by reason, each address once.
  std::array<uint64_t, reasons> count() {
    std::sort(edges_.begin(), edges_.end(),
              [](const Edge &a, const Edge &b) { return std::tie(a.arena, a.address) < std::tie(b.arena, b.address); });
    std::array<uint64_t, reasons> bytes{};
    std::array<int, reasons> open{};
    for (size_t i = 0; i < edges_.size(); ++i) {
      open[edges_[i].reason] += edges_[i].change;
      const size_t reason = size_t(std::find_if(open.begin(), open.end(), [](int n) { return n > 0; }) - open.begin());
      if (reason < reasons) // so another edge of this arena follows
        bytes[reason] += edges_[i + 1].address - edges_[i].address;
    }
    return bytes;
  }

private:
  void claim(uint32_t arena, uint64_t begin, uint64_t end, Reason reason) {
    end = std::min(end, role_.arenas(int(arena)).bytes());
    if (begin >= end)
      return;
    edges_.push_back({arena, begin, reason, 1});
    edges_.push_back({arena, end, reason, -1});
  }

  const Role &role_;
  uint64_t alignment_;
  std::vector<Edge> edges_;
};

/// The buffers that messages leave from or arrive in.
std::set<uint32_t> messageBuffers(const Role &role) {
  std::set<uint32_t> buffers;
  for (const plan::proto::Routine &routine : role.routines())
    for (const plan::proto::Command &command : routine.commands())
      for (const plan::proto::Operand &operand :
           command.has_send() ? command.send().sources() : command.receive().targets()) // none, of other commands
        buffers.insert(operand.buffer());
  return buffers;
}

} // namespace

Fragmentation fragmentationAtPeak(const plan::proto::Plan &plan, const Role &role, std::string_view space,
                                  const SpaceMemory &memory) {
  Claims claims(role, plan.machine().alignment());
  for (const Buffer &buffer : role.buffers())
    if (plan::isIn(role, buffer, space) && buffer.scope() == Buffer::PLAN)
      claims.addAlive(buffer, 0);
  if (memory.peak) {
    const plan::ProgramLives lives(role, memory.peak->program, space);
    const int64_t instant = lives.instantOf(memory.peak->call, memory.peak->command);
    const std::set<uint32_t> messages = messageBuffers(role);
    std::set<int> slotted;
    lives.forEachStretch([&](const plan::Stretch &stretch) {
      const Buffer &buffer = role.buffers(stretch.buffer);
      if (stretch.first <= instant && instant <= stretch.last)
        claims.addAlive(buffer, stretch.slot);
      if (buffer.slots() > 1 && slotted.insert(stretch.buffer).second)
        claims.addSlots(buffer, messages.contains(uint32_t(stretch.buffer)) ? MessageSlot : IdleSlot);
    });
  }
  const auto [alive, alignment, message, idle] = claims.count();
  return {message, idle, alignment, memory.arenaBytes - alive - alignment - message - idle};
}

} // namespace ds::report
