//===- ProgramLives.cpp - lives of buffers over the calls of a program ----===//
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
#include "runtime/plan/run/ProgramLives.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ds::plan {

using proto::Buffer;
using proto::Life;
using proto::Role;

uint64_t slotOffset(const Buffer &buffer, uint64_t slot) {
  const uint64_t own = slot % std::max<uint64_t>(1, buffer.slots());
  return own == 0 ? buffer.offset() : buffer.slot_offsets(int(own) - 1);
}

bool isIn(const Role &role, const Buffer &buffer, std::string_view space) {
  return role.arenas(int(buffer.arena())).space() == space;
}

ProgramLives::ProgramLives(const Role &role, int program, std::string_view space)
    : role_(role), program_(role.programs(program)), callBegins_{0} {
  std::map<std::tuple<int, uint32_t, uint32_t>, size_t> familyOf;
  for (int i = 0; i < role.buffers_size(); ++i) {
    const Buffer &buffer = role.buffers(i);
    if (!isIn(role, buffer, space))
      continue;
    if (buffer.scope() == Buffer::PLAN) {
      resident_[size_t(buffer.category())] += buffer.bytes();
      continue;
    }
    for (const Life &life : buffer.lives()) {
      if (int(life.program()) != program)
        continue;
      const auto [place, fresh] = familyOf.try_emplace(
          std::tuple(int(buffer.scope()), life.birth_routine(), life.death_routine()), families_.size());
      if (fresh)
        families_.push_back({spansOf(buffer.scope(), life.birth_routine(), life.death_routine()), {}});
      Family &family = families_[place->second];
      const bool inOneCall = !family.spans.empty() && family.spans.front().birthCall == family.spans.front().deathCall;
      if (!inOneCall || life.birth_command() <= life.death_command())
        family.lives.push_back({i, &life});
    }
  }
  bornIn_.resize(size_t(program_.calls_size()));
  dieIn_.resize(size_t(program_.calls_size()));
  for (size_t f = 0; f < families_.size(); ++f)
    for (const Span &span : families_[f].spans) {
      bornIn_[size_t(span.birthCall)].push_back(f);
      dieIn_[size_t(span.deathCall)].push_back(f);
    }
  for (int call = 0; call < program_.calls_size(); ++call)
    callBegins_.push_back(callBegins_.back() + commandsOf(call));
}

std::pair<int, int> ProgramLives::placeOf(int64_t instant) const {
  const auto next = std::upper_bound(callBegins_.begin(), callBegins_.end() - 1, instant);
  const int call = int(next - callBegins_.begin()) - 1;
  return {call, int(instant - callBegins_[size_t(call)])};
}

int ProgramLives::commandsOf(int call) const {
  return role_.routines(int(program_.calls(call).routine())).commands_size();
}

std::vector<int> ProgramLives::callsOf(uint32_t routine) const {
  std::vector<int> calls;
  for (int i = 0; i < program_.calls_size(); ++i)
    if (program_.calls(i).routine() == routine)
      calls.push_back(i);
  return calls;
}

std::vector<ProgramLives::Span> ProgramLives::spansOf(Buffer::Scope scope, uint32_t birth, uint32_t death) const {
  const std::vector<int> births = callsOf(birth), deaths = callsOf(death);
  std::vector<Span> spans;
  if (births.empty() || deaths.empty())
    return spans;
  if (scope == Buffer::STEP) {
    if (births.front() <= deaths.back())
      spans.push_back({births.front(), deaths.back()});
    return spans;
  }
  std::map<uint32_t, int> lastOfMicrobatch;
  for (int call : deaths)
    lastOfMicrobatch[program_.calls(call).microbatch()] = call;
  for (int call : births) {
    if (scope == Buffer::CALL) {
      spans.push_back({call, call});
      continue;
    }
    const auto last = lastOfMicrobatch.find(program_.calls(call).microbatch());
    if (last != lastOfMicrobatch.end() && last->second >= call)
      spans.push_back({call, last->second});
  }
  return spans;
}

void ProgramLives::walk(const std::function<void(int, int, const CategoryBytes &)> &visit) const {
  CategoryBytes alive = resident_;
  std::vector<std::vector<int>> born, dying; // buffers by command
  for (int call = 0; call < program_.calls_size(); ++call) {
    const size_t commands = size_t(commandsOf(call));
    born.assign(commands, {});
    dying.assign(commands, {});
    for (size_t f : bornIn_[size_t(call)])
      for (const auto &[buffer, life] : families_[f].lives)
        born[life->birth_command()].push_back(buffer);
    for (size_t f : dieIn_[size_t(call)])
      for (const auto &[buffer, life] : families_[f].lives)
        dying[life->death_command()].push_back(buffer);
    for (size_t command = 0; command < commands; ++command) {
      for (int buffer : born[command])
        alive[size_t(role_.buffers(buffer).category())] += role_.buffers(buffer).bytes();
      visit(call, int(command), alive);
      for (int buffer : dying[command])
        alive[size_t(role_.buffers(buffer).category())] -= role_.buffers(buffer).bytes();
    }
  }
}

std::vector<LiveBuffer> ProgramLives::aliveAt(int call, int command) const {
  std::map<int, uint64_t> bytes;
  const int64_t instant = instantOf(call, command);
  forEachStretch([&](const Stretch &stretch) {
    if (stretch.first <= instant && instant <= stretch.last)
      bytes[stretch.buffer] += role_.buffers(stretch.buffer).bytes();
  });
  std::vector<LiveBuffer> alive;
  alive.reserve(bytes.size());
  for (const auto &[buffer, count] : bytes)
    alive.push_back({buffer, count});
  return alive;
}

void ProgramLives::forEachStretch(const std::function<void(const Stretch &)> &visit) const {
  for (const Family &family : families_)
    for (const auto &[buffer, life] : family.lives)
      for (const Span &span : family.spans) {
        const uint32_t slots = std::max(1u, role_.buffers(buffer).slots());
        visit({buffer, program_.calls(span.birthCall).microbatch() % slots,
               instantOf(span.birthCall, int(life->birth_command())),
               instantOf(span.deathCall, int(life->death_command()))});
      }
}

} // namespace ds::plan
