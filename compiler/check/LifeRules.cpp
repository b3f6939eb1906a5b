//===- LifeRules.cpp - uses lie within the lives of buffers ---------------===//
#include "compiler/check/LifeRules.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::check {

namespace {

/// The instances with which a life begins and ends.
struct Ends {
  size_t birth, death;
};

/// Where a life begins, or ends, that a use may lie in: in the run, in the use's micro-batch or in its call; nothing
/// where that has none.
std::optional<size_t> endOf(const RoleSchedule &schedule, const proto::Buffer &buffer, uint32_t routine,
                            uint32_t command, const Instance &use, bool isBirth) {
  std::optional<uint32_t> call;
  const auto &all = isBirth ? schedule.firstCall : schedule.lastCall;
  const auto own = schedule.calls.find({routine, use.microbatch});
  if (buffer.scope() == proto::Buffer::CALL && use.routine == routine)
    call = use.call;
  else if (buffer.scope() == proto::Buffer::SLOT && own != schedule.calls.end())
    call = isBirth ? own->second.first : own->second.second;
  else if (buffer.scope() == proto::Buffer::STEP && all.contains(routine))
    call = all.at(routine);
  if (!call)
    return std::nullopt;
  const std::vector<size_t> &instances = schedule.instanceOf[*call];
  return instances[std::min<size_t>(command, instances.size() - 1)];
}

/// The life of a buffer that does not live always in which a use lies, by the order of calls and commands.
std::optional<Ends> lifeOf(const RankMemory &memory, const proto::Operand &operand, size_t index) {
  const proto::Buffer &buffer = memory.bufferOf(operand);
  const Instance &use = memory.instance(index);
  const auto at = [&](size_t one) { return std::pair(memory.instance(one).call, memory.instance(one).index); };
  for (const proto::Life &life : buffer.lives()) {
    if (&memory.role().programs(int(life.program())) != &memory.context.program)
      continue;
    const auto endOfUse = [&](uint32_t routine, uint32_t command, bool isBirth) {
      return endOf(memory.context.schedule, buffer, routine, command, use, isBirth);
    };
    const auto birth = endOfUse(life.birth_routine(), life.birth_command(), /*isBirth=*/true);
    const auto death = endOfUse(life.death_routine(), life.death_command(), /*isBirth=*/false);
    if (birth && death && at(*birth) <= at(index) && at(index) <= at(*death))
      return Ends{*birth, *death};
  }
  return std::nullopt;
}

/// Lives that no call begins, or ends, for a use: what is missing then is the call. Empty where each has both.
std::string uncalled(const RankMemory &memory, const proto::Buffer &buffer, const Instance &use) {
  const RoleSchedule &schedule = memory.context.schedule;
  std::set<std::string> routines;
  for (const proto::Life &life : buffer.lives())
    for (const uint32_t routine : {life.birth_routine(), life.death_routine()})
      if (&memory.role().programs(int(life.program())) == &memory.context.program &&
          (buffer.scope() == proto::Buffer::SLOT ? !schedule.calls.contains({routine, use.microbatch})
                                                 : !schedule.firstCall.contains(routine)))
        routines.insert("routine " + memory.role().routines(int(routine)).name());
  std::string text;
  for (const std::string &routine : routines)
    text += (text.empty() ? "; one begins or ends in " : ", one in ") + routine;
  const bool isOfMicrobatch = buffer.scope() == proto::Buffer::SLOT;
  return text.empty() ? ""
                      : text + ", which has no call" +
                            (isOfMicrobatch ? " for micro-batch " + std::to_string(use.microbatch) : "");
}

} // namespace

void requireAlive(const RankMemory &memory, const proto::Operand &operand, size_t index) {
  const proto::Buffer &buffer = memory.bufferOf(operand);
  if (buffer.scope() != proto::Buffer::PLAN && !lifeOf(memory, operand, index))
    memory.refuse("value", index,
                  "uses " + memory.nameOf(operand.buffer()) + " outside the life that the plan gives it" +
                      uncalled(memory, buffer, memory.instance(index)));
}

void requireOrdered(const RankMemory &memory, const proto::Operand &operand, size_t index) {
  const std::optional<Ends> life = lifeOf(memory, operand, index);
  if (!life)
    return;
  const Instance &instance = memory.instance(index);
  const auto [birth, death] = *life;
  const Instance &first = memory.instance(birth), &last = memory.instance(death);
  if (first.queue != instance.queue && !memory.timeline().isBefore(first.queue, first.position, index))
    memory.refuse("race", index,
                  "may use " + memory.nameOf(operand.buffer()) + " before its life begins on queue " +
                      memory.queueName(first.queue),
                  memory.placeOf(birth) + " is where its life begins");
  if (last.queue != instance.queue && !memory.timeline().isBefore(instance.queue, instance.position, death))
    memory.refuse("race", index,
                  "may still use " + memory.nameOf(operand.buffer()) + " after its life has ended on queue " +
                      memory.queueName(last.queue),
                  memory.placeOf(death) + " is where its life ends");
}

} // namespace ds::check
