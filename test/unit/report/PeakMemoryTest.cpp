//===- PeakMemoryTest.cpp - bytes at every instant ------------------------===//
#include "compiler/report/PeakMemory.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/unit/report/SmallPlan.h"

#include <gtest/gtest.h>

namespace ds::report {
namespace {

using namespace plan::proto;

TEST(PeakMemory, TheSmallPlanByEye) {
  const Plan plan = smallPlan();
  ASSERT_NO_THROW(plan::validatePlan(plan));
  const Role &role = plan.roles(0);
  const SpaceMemory memory = measure(role, "device");
  EXPECT_EQ(memory.arenaBytes, 12288u);
  EXPECT_EQ(memory.residentBytes, 2048u);
  EXPECT_EQ(memory.peakLiveBytes, 10240u);
  EXPECT_EQ(memory.programPeak(role, "step"), 10240u);
  EXPECT_EQ(memory.programPeak(role, "evaluate"), 5120u);
  ASSERT_TRUE(memory.peak.has_value());
  EXPECT_EQ(memory.peak->program, 0);
  EXPECT_EQ(memory.peak->call, 2); // backward of micro-batch 0
  EXPECT_EQ(memory.peak->command, 1);
  EXPECT_EQ(memory.atPeak[Buffer::WEIGHTS], 1024u);
  EXPECT_EQ(memory.atPeak[Buffer::OPTIMIZER], 1024u);
  EXPECT_EQ(memory.atPeak[Buffer::GRADIENTS], 1024u);
  EXPECT_EQ(memory.atPeak[Buffer::INPUTS], 1024u);      // both micro-batches
  EXPECT_EQ(memory.atPeak[Buffer::ACTIVATIONS], 2048u); // micro-batch 1 only
  EXPECT_EQ(memory.atPeak[Buffer::WORKSPACE], 4096u);
  ASSERT_EQ(memory.alive.size(), 6u);
  EXPECT_EQ(role.buffers(memory.alive[0].buffer).name(), "scratch");
  EXPECT_EQ(role.buffers(memory.alive[1].buffer).name(), "h");
  EXPECT_EQ(role.buffers(memory.alive[2].buffer).name(), "w");
}

TEST(PeakMemory, OtherSpacesAreEmpty) {
  const Plan plan = smallPlan();
  const SpaceMemory memory = measure(plan.roles(0), "host");
  EXPECT_EQ(memory.arenaBytes, 0u);
  EXPECT_EQ(memory.peakLiveBytes, 0u);
  EXPECT_TRUE(memory.alive.empty());
}

// One forward, one backward: only one slot of x and h is ever alive.
TEST(PeakMemory, TheOrderOfCallsDecides) {
  Plan plan = smallPlan();
  Program &step = *plan.mutable_roles(0)->mutable_programs(0);
  step.mutable_calls()->SwapElements(1, 2);
  const SpaceMemory memory = measure(plan.roles(0), "device");
  // backward 1 of micro-batch 0: w m g x scratch; h of micro-batch 0 has died and that of 1 is not born.
  EXPECT_EQ(memory.peakLiveBytes, 1024u * 3 + 512 + 4096);
}

// A first micro-batch that runs another routine: two lives of one buffer, each paired with the backward of its own.
TEST(PeakMemory, VariantsOfARoutineKeepTheirMicrobatches) {
  Plan plan = smallPlan();
  Role &role = *plan.mutable_roles(0);
  *role.add_routines() = role.routines(0);
  role.mutable_routines(4)->set_name("forward, first");
  role.mutable_programs(0)->mutable_calls(0)->set_routine(4);
  for (int buffer : {3, 4}) {
    Life &life = *role.mutable_buffers(buffer)->add_lives();
    life = role.buffers(buffer).lives(0);
    life.set_birth_routine(4);
  }
  ASSERT_NO_THROW(plan::validatePlan(plan));
  EXPECT_EQ(measure(role, "device").peakLiveBytes, 10240u);
}

TEST(PeakMemory, AProgramThatNeverCallsTheRoutineHasNoLife) {
  Plan plan = smallPlan();
  Role &role = *plan.mutable_roles(0);
  role.mutable_programs(0)->mutable_calls()->DeleteSubrange(2, 3); // no backward, no update
  const SpaceMemory memory = measure(role, "device");
  EXPECT_EQ(memory.programPeaks[0], 2048u); // neither x nor h has a death, so neither lives
}

// A file may say so; nothing is alive then, and nothing is read out of range.
TEST(PeakMemory, ADeathBeforeTheBirthIsNoLife) {
  Plan plan = smallPlan();
  Life &life = *plan.mutable_roles(0)->mutable_buffers(2)->mutable_lives(0); // g, STEP
  life.set_birth_routine(2);
  life.set_birth_command(0);
  life.set_death_routine(1);
  life.set_death_command(1);
  ASSERT_NO_THROW(plan::validatePlan(plan));
  EXPECT_EQ(measure(plan.roles(0), "device").peakLiveBytes, 10240u - 1024);
  life.set_birth_routine(2);
  life.set_death_routine(2);
  plan.mutable_roles(0)->mutable_routines(2)->add_commands()->CopyFrom(plan.roles(0).routines(2).commands(0));
  life.set_birth_command(1);
  life.set_death_command(0);
  ASSERT_NO_THROW(plan::validatePlan(plan));
  EXPECT_EQ(measure(plan.roles(0), "device").peakLiveBytes, 10240u - 1024);
}

std::vector<uint64_t> phaseBytes(const Plan &plan, std::string_view space) {
  std::vector<uint64_t> bytes;
  for (const Phase &phase : phasesOf(plan, plan.roles(0), measure(plan.roles(0), space)))
    bytes.push_back(phase.liveBytes);
  return bytes;
}

TEST(PeakMemory, PhasesAreWhatIsAliveInThem) {
  Plan plan = smallPlan();
  plan.mutable_training()->set_checkpoint_buffer_bytes(77);
  // init, load, step, eval, save
  EXPECT_EQ(phaseBytes(plan, "device"), (std::vector<uint64_t>{2048, 2048, 10240, 5120, 2048}));
  EXPECT_EQ(phaseBytes(plan, "host"), (std::vector<uint64_t>{0, 0, 0, 0, 77}));
}

} // namespace
} // namespace ds::report
