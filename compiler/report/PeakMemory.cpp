//===- PeakMemory.cpp - bytes alive at every instant of a program ---------===//
#include "compiler/report/PeakMemory.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/ProgramLives.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ds::report {

using plan::proto::Buffer;
using plan::proto::Role;

namespace {

/// The most bytes alive, and when first; the resident bytes where no command runs.
std::pair<uint64_t, std::optional<std::pair<int, int>>> peakOf(const plan::ProgramLives &lives, uint64_t resident) {
  uint64_t most = resident;
  std::optional<std::pair<int, int>> when;
  lives.walk([&](int call, int command, const plan::CategoryBytes &alive) {
    const uint64_t live = std::accumulate(alive.begin(), alive.end(), uint64_t(0));
    if (when && live <= most)
      return;
    most = live;
    when = {call, command};
  });
  return {most, when};
}

} // namespace

uint64_t SpaceMemory::programPeak(const Role &role, std::string_view name) const {
  for (int i = 0; i < role.programs_size(); ++i)
    if (role.programs(i).name() == name)
      return programPeaks[size_t(i)];
  return residentBytes;
}

std::vector<Phase> phasesOf(const plan::proto::Plan &plan, const Role &role, const SpaceMemory &memory) {
  const uint64_t buffer = memory.space == "host" ? plan.training().checkpoint_buffer_bytes() : 0;
  return {{"init", memory.residentBytes},
          {"load", memory.residentBytes},
          {"step", memory.programPeak(role, "step")},
          {"eval", memory.programPeak(role, "evaluate")},
          {"save", memory.residentBytes + buffer}};
}

SpaceMemory measure(const Role &role, std::string_view space) {
  SpaceMemory memory{.space = std::string(space)};
  for (const plan::proto::Arena &arena : role.arenas())
    if (arena.space() == space)
      memory.arenaBytes += arena.bytes();
  for (int i = 0; i < role.buffers_size(); ++i) {
    const Buffer &buffer = role.buffers(i);
    if (!plan::isIn(role, buffer, space) || buffer.scope() != Buffer::PLAN)
      continue;
    memory.residentBytes += buffer.bytes();
    memory.alive.push_back({i, buffer.bytes()});
  }
  memory.peakLiveBytes = memory.residentBytes;
  std::vector<plan::LiveBuffer> transient;
  for (int i = 0; i < role.programs_size(); ++i) {
    const plan::ProgramLives lives(role, i, space);
    const auto [bytes, when] = peakOf(lives, memory.residentBytes);
    memory.programPeaks.push_back(bytes);
    if (when && (!memory.peak || bytes > memory.peakLiveBytes)) {
      memory.peakLiveBytes = bytes;
      memory.peak = Instant{i, when->first, when->second};
      transient = lives.aliveAt(when->first, when->second);
    }
  }
  memory.alive.insert(memory.alive.end(), transient.begin(), transient.end());
  for (const plan::LiveBuffer &live : memory.alive)
    memory.atPeak[size_t(role.buffers(live.buffer).category())] += live.bytes;
  std::sort(memory.alive.begin(), memory.alive.end(), [](const plan::LiveBuffer &a, const plan::LiveBuffer &b) {
    return std::tuple(-int64_t(a.bytes), a.buffer) < std::tuple(-int64_t(b.bytes), b.buffer);
  });
  return memory;
}

} // namespace ds::report
