//===- LifeRules.cpp - uses lie within the lives of buffers ---------------===//
#include "compiler/check/LifeRules.h"

#include <algorithm>

namespace ds::check {

namespace {

/// The instance with which the life of a buffer that another instance uses begins or ends: in the run, in its
/// micro-batch or in its call.
size_t endOfLife(const RoleSchedule &schedule, const proto::Buffer &buffer, const proto::Life &life,
                 const Instance &instance, bool isBirth) {
  const uint32_t routine = isBirth ? life.birth_routine() : life.death_routine();
  uint32_t call = isBirth ? schedule.firstCall.at(routine) : schedule.lastCall.at(routine);
  if (buffer.scope() == proto::Buffer::CALL)
    call = instance.call;
  if (const auto own = schedule.calls.find({routine, instance.microbatch});
      buffer.scope() == proto::Buffer::SLOT && own != schedule.calls.end())
    call = isBirth ? own->second.first : own->second.second;
  const uint32_t command = isBirth ? life.birth_command() : life.death_command();
  return schedule.instanceOf[call][std::min<size_t>(command, schedule.instanceOf[call].size() - 1)];
}

bool isWithin(const RoleSchedule &schedule, const proto::Buffer &buffer, const proto::Life &life,
              const Instance &instance) {
  const bool step = buffer.scope() == proto::Buffer::STEP;
  if (!schedule.firstCall.contains(life.birth_routine()) || !schedule.lastCall.contains(life.death_routine()))
    return false;
  if (instance.routine == life.birth_routine() && (!step || instance.call == schedule.firstCall.at(instance.routine)) &&
      instance.index < life.birth_command())
    return false;
  if (instance.routine == life.death_routine() && (!step || instance.call == schedule.lastCall.at(instance.routine)) &&
      instance.index > life.death_command())
    return false;
  if (buffer.scope() == proto::Buffer::CALL)
    return instance.routine == life.birth_routine();
  return instance.call >= schedule.firstCall.at(life.birth_routine()) &&
         instance.call <= schedule.lastCall.at(life.death_routine());
}

/// Whether a life begins and ends in calls of an instance's own micro-batch.
bool isOfMicrobatch(const RoleSchedule &schedule, const proto::Life &life, const Instance &instance) {
  return schedule.calls.contains({life.birth_routine(), instance.microbatch}) &&
         schedule.calls.contains({life.death_routine(), instance.microbatch});
}

/// Whether a life begins and ends in calls of some micro-batch. Else no micro-batch has it (ProgramLives).
bool isOfSomeMicrobatch(const RoleSchedule &schedule, const proto::Life &life) {
  for (auto birth = schedule.calls.lower_bound({life.birth_routine(), 0});
       birth != schedule.calls.end() && birth->first.first == life.birth_routine(); ++birth) {
    const auto death = schedule.calls.find({life.death_routine(), birth->first.second});
    if (death != schedule.calls.end() && birth->second.first <= death->second.second)
      return true;
  }
  return false;
}

/// The life that holds an instance's use of an operand, or nullptr. Of a buffer that does not live always. The last
/// micro-batch may have a backward of its own, and lives that end there; another micro-batch's use is in none of these.
const proto::Life *lifeOf(const RankMemory &memory, const proto::Operand &operand, size_t index) {
  const RoleSchedule &schedule = memory.context.schedule;
  const proto::Buffer &buffer = memory.bufferOf(operand);
  const Instance &instance = memory.instance(index);
  const proto::Life *others = nullptr;
  bool hasOwn = false;
  for (const proto::Life &life : buffer.lives()) {
    if (&memory.role().programs(int(life.program())) != &memory.context.program)
      continue;
    const bool isOwn = buffer.scope() != proto::Buffer::SLOT || isOfMicrobatch(schedule, life, instance);
    hasOwn |= isOwn;
    if (!isWithin(schedule, buffer, life, instance))
      continue;
    if (isOwn)
      return &life;
    if (others == nullptr && isOfSomeMicrobatch(schedule, life))
      others = &life;
  }
  return hasOwn ? nullptr : others;
}

} // namespace

void requireAlive(const RankMemory &memory, const proto::Operand &operand, size_t index) {
  if (memory.bufferOf(operand).scope() != proto::Buffer::PLAN && lifeOf(memory, operand, index) == nullptr)
    memory.refuse("value", index,
                  "uses " + memory.nameOf(operand.buffer()) + " outside the life that the plan gives it");
}

void requireOrdered(const RankMemory &memory, const proto::Operand &operand, size_t index) {
  const proto::Life *life = lifeOf(memory, operand, index);
  if (life == nullptr)
    return;
  const RoleSchedule &schedule = memory.context.schedule;
  const proto::Buffer &buffer = memory.bufferOf(operand);
  const Instance &instance = memory.instance(index);
  const size_t birth = endOfLife(schedule, buffer, *life, instance, /*isBirth=*/true);
  const size_t death = endOfLife(schedule, buffer, *life, instance, /*isBirth=*/false);
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
