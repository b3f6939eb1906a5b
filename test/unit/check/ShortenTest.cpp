//===- ShortenTest.cpp - fewer micro-batches, the same verdict -------------===//
//
// Random schedules of two stages, with random slots, delays and defects. What is checked with repetitions left out must
// be accepted or refused as it is with all of them.
//
//===----------------------------------------------------------------------===//
#include "compiler/check/Check.h"
#include "compiler/check/schedule/ShortenSchedule.h"
#include "core/Error.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/unit/runtime/PipelinePlan.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ds::check {
namespace {

/// Gives the backward of the last micro-batch a routine of its own, with the same commands.
void peelBackward(proto::Role &role) {
  uint32_t backward = 0;
  while (role.routines(int(backward)).name() != "backward")
    ++backward;
  const auto peeled = uint32_t(role.routines_size());
  const proto::Routine commands = role.routines(int(backward));
  *role.add_routines() = commands;
  role.mutable_routines(int(peeled))->set_name("backward_last");
  proto::Program &step = *role.mutable_programs(0);
  int last = step.calls_size() - 1;
  while (step.calls(last).routine() != backward)
    --last;
  step.mutable_calls(last)->set_routine(peeled);
  for (proto::Buffer &buffer : *role.mutable_buffers())
    for (proto::Life life : std::vector(buffer.lives().begin(), buffer.lives().end())) {
      if (life.birth_routine() != backward && life.death_routine() != backward)
        continue;
      life.set_birth_routine(life.birth_routine() == backward ? peeled : life.birth_routine());
      life.set_death_routine(life.death_routine() == backward ? peeled : life.death_routine());
      *buffer.add_lives() = life;
    }
}

class RandomPlan {
public:
  explicit RandomPlan(uint64_t seed) : engine_(seed) {
    plan_ = test::pipelinePlan(uint32_t(40 + below(40)), uint32_t(1 + below(2))).plan;
    const bool isPeeled = below(2) == 0;
    for (proto::Role &role : *plan_.mutable_roles()) {
      if (isPeeled)
        peelBackward(role);
      for (proto::Buffer &buffer : *role.mutable_buffers())
        if (buffer.slots() > 1)
          giveSlots(role, buffer);
    }
  }

  /// One to three defects, or edits that do no harm.
  void spoil() {
    for (uint64_t edit = 0, edits = 1 + below(3); edit < edits; ++edit)
      spoilOnce(*plan_.mutable_roles(int(below(2))));
  }

  const proto::Plan &plan() const { return plan_; }

private:
  uint64_t below(uint64_t count) { return engine_() % count; }

  /// More slots than are needed, side by side at the end of the arena.
  void giveSlots(proto::Role &role, proto::Buffer &buffer) {
    buffer.set_slots(uint32_t(2 + below(7)));
    buffer.clear_slot_offsets();
    for (uint32_t slot = 1; slot < buffer.slots(); ++slot)
      buffer.add_slot_offsets(room(role, buffer.bytes()));
  }

  uint64_t room(proto::Role &role, uint64_t bytes) {
    proto::Arena &arena = *role.mutable_arenas(0);
    const uint64_t begin = (arena.bytes() + 63) / 64 * 64;
    arena.set_bytes(begin + bytes);
    arena.set_peak_live_bytes(arena.bytes());
    return begin;
  }

  proto::Buffer &anyBuffer(proto::Role &role) {
    return *role.mutable_buffers(int(below(uint64_t(role.buffers_size()))));
  }

  /// A buffer with slots, and one of them on any other buffer, or on another slot.
  void moveSlot(proto::Role &role) {
    proto::Buffer &buffer = anyBuffer(role);
    const proto::Buffer &other = anyBuffer(role);
    if (buffer.slots() < 2 || other.offset() + buffer.bytes() > role.arenas(0).bytes())
      return;
    const uint64_t offset = other.slots() > 1 && below(2) == 0
                                ? other.slot_offsets(int(below(uint64_t(other.slot_offsets_size()))))
                                : other.offset();
    if (offset + buffer.bytes() <= role.arenas(0).bytes())
      buffer.set_slot_offsets(int(below(uint64_t(buffer.slot_offsets_size()))), offset);
  }

  /// A buffer on the bytes of any other.
  void moveBuffer(proto::Role &role) {
    proto::Buffer &buffer = anyBuffer(role);
    const proto::Buffer &other = anyBuffer(role);
    if (other.offset() + buffer.bytes() <= role.arenas(0).bytes())
      buffer.set_offset(other.offset());
  }

  /// A life that begins or ends with another command.
  void moveLife(const proto::Role &role, proto::Buffer &buffer) {
    if (buffer.lives_size() == 0)
      return;
    proto::Life &life = *buffer.mutable_lives(int(below(uint64_t(buffer.lives_size()))));
    const auto routine = uint32_t(below(uint64_t(role.routines_size()))), command = uint32_t(below(4));
    if (below(2) == 0)
      life.set_birth_command(command);
    else
      life.set_death_command(command);
    if (below(3) == 0)
      below(2) == 0 ? life.set_birth_routine(routine) : life.set_death_routine(routine);
  }

  /// A call behind the next few, of other routines.
  void moveCall(proto::Program &program) {
    const int calls = program.calls_size();
    int call = int(below(uint64_t(calls)));
    for (uint64_t steps = 1 + below(4); steps > 0 && call + 1 < calls; --steps, ++call)
      if (program.calls(call).routine() != program.calls(call + 1).routine())
        program.mutable_calls()->SwapElements(call, call + 1);
  }

  void spoilOnce(proto::Role &role) {
    proto::Routine &routine = *role.mutable_routines(int(below(uint64_t(role.routines_size()))));
    proto::Command &command = *routine.mutable_commands(int(below(uint64_t(routine.commands_size()))));
    switch (below(8)) {
    case 0:
    case 1:
      return moveSlot(role);
    case 2:
      return moveLife(role, anyBuffer(role));
    case 3:
      return moveBuffer(role);
    case 4:
      return moveCall(*role.mutable_programs(0));
    case 5:
      command.clear_signals();
      return;
    case 6:
      for (proto::Wait &wait : *command.mutable_waits())
        wait.set_delay(uint32_t(below(10)));
      return;
    default:
      command.clear_waits();
    }
  }

  std::mt19937_64 engine_;
  proto::Plan plan_;
};

std::string textOf(const std::optional<Finding> &finding) {
  return finding ? finding->rule + ": " + finding->sentence : "sound";
}

TEST(Shorten, LeavesALastBackwardOfItsOwn) {
  proto::Plan plan = test::pipelinePlan(60, 2).plan;
  for (proto::Role &role : *plan.mutable_roles())
    peelBackward(role);
  ASSERT_NO_THROW(plan::validatePlan(plan));
  const std::optional<proto::Plan> shorter = shortenSchedule(plan);
  ASSERT_TRUE(shorter.has_value());
  EXPECT_LT(shorter->training().accumulation_steps(), 16u);
  EXPECT_EQ(textOf(checkPlan(plan, World::Open)), "sound");
  EXPECT_EQ(textOf(checkWholePlan(plan, World::Open)), "sound");
}

TEST(Shorten, LeavesNothingOutWhereAUseLiesInNoLife) {
  proto::Plan plan = test::pipelinePlan(60).plan;
  EXPECT_TRUE(shortenSchedule(plan).has_value());
  const auto slots = std::ranges::find_if(*plan.mutable_roles(0)->mutable_buffers(),
                                          [](const proto::Buffer &buffer) { return buffer.slots() > 1; });
  proto::Life &life = *slots->mutable_lives(0);
  life.set_death_routine(life.birth_routine());
  life.set_death_command(life.birth_command());
  EXPECT_FALSE(shortenSchedule(plan).has_value());
}

TEST(Shorten, GivesTheVerdictOfTheWholeSchedule) {
  int shortened = 0, refused = 0, checked = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    RandomPlan random(seed);
    if (seed % 8 != 0)
      random.spoil();
    try {
      plan::validatePlan(random.plan());
    } catch (const Error &) {
      continue; // the reader has refused it
    }
    ++checked;
    shortened += shortenSchedule(random.plan()).has_value();
    const std::optional<Finding> some = checkPlan(random.plan(), World::Open),
                                 all = checkWholePlan(random.plan(), World::Open);
    EXPECT_EQ(some.has_value(), all.has_value())
        << "seed " << seed << "\n  short: " << textOf(some) << "\n  whole: " << textOf(all);
    refused += all.has_value();
  }
  EXPECT_GT(checked, 1500);
  EXPECT_GT(shortened, 1400);
  EXPECT_GT(refused, 500);
  EXPECT_GT(checked - refused, 500);
}

} // namespace
} // namespace ds::check
