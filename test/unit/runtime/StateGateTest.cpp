//===- StateGateTest.cpp - state is copied before it is overwritten -------===//
#include "runtime/executor/StateGate.h"

#include "runtime/checkpoint/ByteRing.h"
#include "runtime/checkpoint/StateShares.h"
#include "test/unit/runtime/ShardedPlan.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <span>
#include <thread>
#include <vector>

namespace ds::test {
namespace {

using namespace runtime;

TEST(StateGate, HoldsUntilTheLastPartOfABufferIsCopied) {
  const PlanBuilder builder = shardedPlan(1, 1);
  const StateShares shares = shareState(builder.plan);
  StateGate gate(builder.plan.roles(0), shares.parts[0]);
  gate.wait(shares.parts[0].size()); // open before the first save
  std::atomic<int> asked = 0;
  gate.close([&] { ++asked; });
  std::atomic<bool> through = false;
  std::thread writer([&] {
    gate.wait(2);
    through = true;
  });
  gate.copied(1);
  while (asked == 0)
    std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(through);
  gate.copied(2);
  writer.join();
  EXPECT_TRUE(through);
  gate.wait(1); // that far nobody need ask
  EXPECT_EQ(asked, 1);
}

TEST(StateGate, OnlyCommandsThatWriteStateWait) {
  const PlanBuilder builder = shardedPlan(1, 1);
  const plan::proto::Role &role = builder.plan.roles(0);
  StateGate gate(role, shareState(builder.plan).parts[0]);
  struct Nothing final : Task {
    Status run(const Call &, Queue &) noexcept override { return {}; }
  } inner;
  std::vector<std::unique_ptr<Task>> wrappers;
  for (const plan::proto::Routine &routine : role.routines()) {
    const size_t before = wrappers.size();
    for (const plan::proto::Command &command : routine.commands())
      (void)gate.around(command, inner, wrappers);
    EXPECT_EQ(wrappers.size() > before, routine.name() == "update") << routine.name();
  }
}

TEST(ByteRing, KeepsTheOrderInAnySize) {
  for (const uint64_t capacity : {1, 3, 64, 1000}) {
    ByteRing ring(capacity);
    constexpr uint64_t total = 1000;
    std::thread writer([&] {
      for (uint64_t at = 0; at < total;) {
        const std::span<std::byte> room = ring.room(std::min<uint64_t>(7, total - at));
        for (std::byte &byte : room)
          byte = std::byte(at++ * 37);
        ring.put(room.size());
      }
    });
    for (uint64_t at = 0; at < total;) {
      const std::span<const std::byte> content = ring.content(total - at);
      for (const std::byte byte : content)
        EXPECT_EQ(byte, std::byte(at++ * 37));
      ring.take(content.size());
    }
    writer.join();
  }
}

} // namespace
} // namespace ds::test
