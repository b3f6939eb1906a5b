//===- Liveness.cpp - lives of buffers over the calls of a program --------===//
//
// A life names a birth and a death by (routine, command). Over the calls of a program it becomes spans from call to
// call:
//   STEP  one, from the first call of the birth's routine to the last of the death's;
//   SLOT  one a micro-batch, between the two calls that it has in common;
//   CALL  one a call.
// Lives with the same routines and scope share their spans. A walk over the calls adds what is born before a command
// and takes away what dies after it.
//
//===----------------------------------------------------------------------===//
#include "compiler/report/Liveness.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Buffer;
using plan::proto::Life;
using plan::proto::Program;
using plan::proto::Role;

struct Span {
  int birthCall, deathCall;
};

/// Lives that begin and end in the same calls.
struct Family {
  std::vector<Span> spans;
  std::vector<std::pair<int, const Life *>> lives; // buffer, life
};

std::vector<int> callsOf(const Program &program, uint32_t routine) {
  std::vector<int> calls;
  for (int i = 0; i < program.calls_size(); ++i)
    if (program.calls(i).routine() == routine)
      calls.push_back(i);
  return calls;
}

std::vector<Span> spansOf(const Program &program, Buffer::Scope scope, uint32_t birth, uint32_t death) {
  const std::vector<int> births = callsOf(program, birth), deaths = callsOf(program, death);
  std::vector<Span> spans;
  if (births.empty() || deaths.empty())
    return spans;
  if (scope == Buffer::STEP)
    return {{births.front(), std::max(births.front(), deaths.back())}};
  std::map<uint32_t, int> lastOfMicrobatch;
  for (int call : deaths)
    lastOfMicrobatch[program.calls(call).microbatch()] = call;
  for (int call : births) {
    if (scope == Buffer::CALL) {
      spans.push_back({call, call});
      continue;
    }
    const auto last = lastOfMicrobatch.find(program.calls(call).microbatch());
    if (last != lastOfMicrobatch.end() && last->second >= call)
      spans.push_back({call, last->second});
  }
  return spans;
}

/// One program's lives in one space.
class Walk {
public:
  Walk(const Role &role, int program, const std::vector<bool> &inSpace, uint64_t resident)
      : role_(role), program_(role.programs(program)), resident_(resident) {
    std::map<std::tuple<int, uint32_t, uint32_t>, size_t> familyOf;
    for (int i = 0; i < role.buffers_size(); ++i) {
      const Buffer &buffer = role.buffers(i);
      for (const Life &life : buffer.lives()) {
        if (!inSpace[size_t(i)] || int(life.program()) != program || buffer.scope() == Buffer::PLAN)
          continue;
        const auto [place, fresh] = familyOf.try_emplace(
            std::tuple(int(buffer.scope()), life.birth_routine(), life.death_routine()), families_.size());
        if (fresh)
          families_.push_back({spansOf(program_, buffer.scope(), life.birth_routine(), life.death_routine()), {}});
        families_[place->second].lives.push_back({i, &life});
      }
    }
    bornIn_.resize(size_t(program_.calls_size()));
    dieIn_.resize(size_t(program_.calls_size()));
    for (size_t f = 0; f < families_.size(); ++f)
      for (const Span &span : families_[f].spans) {
        bornIn_[size_t(span.birthCall)].push_back(f);
        dieIn_[size_t(span.deathCall)].push_back(f);
      }
  }

  /// The most bytes alive, and when first.
  std::pair<uint64_t, std::optional<std::pair<int, int>>> peak() const {
    uint64_t live = resident_, most = resident_;
    std::optional<std::pair<int, int>> when;
    std::vector<uint64_t> born, dying;
    for (int call = 0; call < program_.calls_size(); ++call) {
      const int commands = role_.routines(int(program_.calls(call).routine())).commands_size();
      born.assign(size_t(commands), 0);
      dying.assign(size_t(commands), 0);
      for (size_t f : bornIn_[size_t(call)])
        for (const auto &[buffer, life] : families_[f].lives)
          born[life->birth_command()] += role_.buffers(buffer).bytes();
      for (size_t f : dieIn_[size_t(call)])
        for (const auto &[buffer, life] : families_[f].lives)
          dying[life->death_command()] += role_.buffers(buffer).bytes();
      for (int command = 0; command < commands; ++command) {
        live += born[size_t(command)];
        if (!when || live > most) {
          most = live;
          when = {call, command};
        }
        live -= dying[size_t(command)];
      }
    }
    return {most, when};
  }

  /// What is alive while a command runs, beside what is resident.
  std::vector<LiveBuffer> aliveAt(int call, int command) const {
    std::map<int, uint64_t> bytes;
    for (const Family &family : families_) {
      uint64_t within = 0; // spans that began in an earlier call and end in a later one
      std::vector<Span> edges;
      for (const Span &span : family.spans)
        if (span.birthCall < call && call < span.deathCall)
          ++within;
        else if (span.birthCall == call || span.deathCall == call)
          edges.push_back(span);
      for (const auto &[buffer, life] : family.lives) {
        uint64_t alive = within;
        for (const Span &span : edges)
          alive += (span.birthCall < call || int(life->birth_command()) <= command) &&
                   (span.deathCall > call || int(life->death_command()) >= command);
        if (alive > 0)
          bytes[buffer] += alive * role_.buffers(buffer).bytes();
      }
    }
    std::vector<LiveBuffer> alive;
    alive.reserve(bytes.size());
    for (const auto &[buffer, count] : bytes)
      alive.push_back({buffer, count});
    return alive;
  }

private:
  const Role &role_;
  const Program &program_;
  uint64_t resident_;
  std::vector<Family> families_;
  std::vector<std::vector<size_t>> bornIn_, dieIn_; // families by call
};

} // namespace

uint64_t SpaceMemory::programPeak(const Role &role, std::string_view name) const {
  for (int i = 0; i < role.programs_size(); ++i)
    if (role.programs(i).name() == name)
      return programPeaks[size_t(i)];
  return residentBytes;
}

SpaceMemory measure(const Role &role, std::string_view space) {
  SpaceMemory memory;
  for (const plan::proto::Arena &arena : role.arenas())
    if (arena.space() == space)
      memory.arenaBytes += arena.bytes();
  std::vector<bool> inSpace(size_t(role.buffers_size()));
  for (int i = 0; i < role.buffers_size(); ++i) {
    const Buffer &buffer = role.buffers(i);
    inSpace[size_t(i)] = role.arenas(int(buffer.arena())).space() == space;
    if (!inSpace[size_t(i)] || buffer.scope() != Buffer::PLAN)
      continue;
    memory.residentBytes += buffer.bytes();
    memory.alive.push_back({i, buffer.bytes()});
  }
  memory.peakLiveBytes = memory.residentBytes;
  std::vector<LiveBuffer> transient;
  for (int i = 0; i < role.programs_size(); ++i) {
    const Walk walk(role, i, inSpace, memory.residentBytes);
    const auto [bytes, when] = walk.peak();
    memory.programPeaks.push_back(bytes);
    if (when && (!memory.peak || bytes > memory.peakLiveBytes)) {
      memory.peakLiveBytes = bytes;
      memory.peak = Instant{i, when->first, when->second};
      transient = walk.aliveAt(when->first, when->second);
    }
  }
  memory.alive.insert(memory.alive.end(), transient.begin(), transient.end());
  for (const LiveBuffer &live : memory.alive)
    memory.atPeak[size_t(role.buffers(live.buffer).category())] += live.bytes;
  std::sort(memory.alive.begin(), memory.alive.end(), [](const LiveBuffer &a, const LiveBuffer &b) {
    return std::tuple(-int64_t(a.bytes), a.buffer) < std::tuple(-int64_t(b.bytes), b.buffer);
  });
  return memory;
}

} // namespace ds::report
