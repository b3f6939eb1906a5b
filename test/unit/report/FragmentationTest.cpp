//===- FragmentationTest.cpp - why an arena is larger than its peak -------===//
#include "compiler/report/Fragmentation.h"
#include "compiler/report/PeakMemory.h"
#include "test/unit/report/SmallPlan.h"

#include <gtest/gtest.h>

namespace ds::report {
namespace {

using namespace plan::proto;

Fragmentation fragmentationOf(const Plan &plan) {
  const SpaceMemory memory = measure(plan.roles(0), "device");
  return fragmentationAtPeak(plan, plan.roles(0), "device", memory);
}

// At the peak h of micro-batch 0 has died; its slot waits. All else is alive, and nothing is unaligned.
TEST(Fragmentation, ASlotThatWaitsIsIdle) {
  const Fragmentation fragmentation = fragmentationOf(smallPlan());
  EXPECT_EQ(fragmentation.idleSlots, 2048u);
  EXPECT_EQ(fragmentation.alignment, 0u);
  EXPECT_EQ(fragmentation.gaps, 0u);
}

// The same when h is what another stage sends: the slot waits for a message.
TEST(Fragmentation, ASlotThatAMessageMayFillIsNamed) {
  Plan plan = smallPlan();
  Command &command = *plan.mutable_roles(0)->mutable_routines(0)->add_commands();
  for (int i = 0; i < plan.roles(0).buffers_size(); ++i)
    if (plan.roles(0).buffers(i).name() == "h")
      command.mutable_receive()->add_targets()->set_buffer(uint32_t(i));
  const Fragmentation fragmentation = fragmentationOf(plan);
  EXPECT_EQ(fragmentation.messageSlots, 2048u);
  EXPECT_EQ(fragmentation.idleSlots, 0u);
}

TEST(Fragmentation, WhatFollowsAnUnalignedBufferIsLostToAlignment) {
  Plan plan = smallPlan();
  plan.mutable_roles(0)->mutable_buffers(2)->set_bytes(1000); // g
  EXPECT_EQ(fragmentationOf(plan).alignment, 24u);            // to 3072, a multiple of 64
  EXPECT_EQ(fragmentationOf(plan).gaps, 0u);
}

TEST(Fragmentation, TheRestAreGaps) {
  Plan plan = smallPlan();
  plan.mutable_roles(0)->mutable_arenas(0)->set_bytes(16384);
  plan.mutable_roles(0)->mutable_buffers(5)->set_offset(12288); // scratch
  const Fragmentation fragmentation = fragmentationOf(plan);
  EXPECT_EQ(fragmentation.gaps, 4096u);
  EXPECT_EQ(fragmentation.idleSlots, 2048u);
}

// e is alive in evaluate alone: an idle slot that another buffer takes over just then is not idle.
TEST(Fragmentation, AnAddressCountsOnce) {
  Plan plan = smallPlan();
  plan.mutable_roles(0)->mutable_buffers(5)->set_offset(4096); // scratch, over h's slot 0
  plan.mutable_roles(0)->mutable_buffers(5)->set_bytes(2048);
  const Fragmentation fragmentation = fragmentationOf(plan);
  EXPECT_EQ(fragmentation.idleSlots, 0u);
  EXPECT_EQ(fragmentation.gaps, 12288u - 8192u);
}

TEST(Fragmentation, TheyAddUpToThePadding) {
  for (uint64_t bytes : {1024u, 1000u, 4u}) {
    Plan plan = smallPlan();
    plan.mutable_roles(0)->mutable_buffers(2)->set_bytes(bytes);
    const SpaceMemory memory = measure(plan.roles(0), "device");
    const Fragmentation fragmentation = fragmentationOf(plan);
    EXPECT_EQ(fragmentation.messageSlots + fragmentation.idleSlots + fragmentation.alignment + fragmentation.gaps,
              memory.arenaBytes - memory.peakLiveBytes);
  }
}

} // namespace
} // namespace ds::report
