//===- TransfersTest.cpp - a step on the simulated clock, by hand ----------===//
#include "compiler/report/Transfers.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/StepClock.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using namespace plan::proto;
using plan::lastEnd;
using plan::TimedCommand;

constexpr uint32_t compute = 0, evict = 1, fetch = 2; // queues
constexpr uint32_t ready = 0, away = 1, here = 2;     // events
constexpr uint32_t activation = 0, hostCopy = 1;      // buffers
constexpr int64_t bytesASecond = 10'000'000'000;      // of the cost model

/// One rank with three queues, three events, and a buffer in each of two memories; nothing to do yet.
Plan emptyPlan() {
  Plan plan;
  Role &role = *plan.add_roles();
  for (const char *name : {"compute", "evict", "fetch"})
    role.add_queues()->set_name(name);
  role.mutable_queues(compute)->set_kind(Queue::COMPUTE);
  for (const char *name : {"ready", "away", "here"})
    role.add_events()->set_name(name);
  for (const char *space : {"device", "host"})
    role.add_arenas()->set_space(space);
  role.add_buffers()->set_name("device bytes");
  role.add_buffers()->set_name("h.0");
  role.mutable_buffers(hostCopy)->set_arena(1);
  role.add_routines()->set_name("all");
  role.add_programs()->set_name("step");
  return plan;
}

void call(Plan &plan, uint32_t microbatch) {
  plan.mutable_roles(0)->mutable_programs(0)->add_calls()->set_microbatch(microbatch);
}

Command &command(Plan &plan, uint32_t queue, std::initializer_list<uint32_t> signals = {}) {
  Command &command = *plan.mutable_roles(0)->mutable_routines(0)->add_commands();
  command.set_queue(queue);
  command.mutable_signals()->Add(signals.begin(), signals.end());
  return command;
}

void wait(Command &command, uint32_t event, uint32_t delay = 0) {
  command.add_waits()->set_event(event);
  command.mutable_waits(command.waits_size() - 1)->set_delay(delay);
}

void setOperand(Operand &operand, uint32_t buffer, int64_t bytes) {
  operand.set_buffer(buffer);
  operand.set_dtype(DTYPE_U8);
  operand.add_shape(bytes);
}

Command &work(Plan &plan, int64_t seconds, std::initializer_list<uint32_t> signals = {}) {
  Command &fill = command(plan, compute, signals);
  setOperand(*fill.mutable_fill()->mutable_target(), activation, seconds * bytesASecond);
  return fill;
}

Command &copy(Plan &plan, uint32_t queue, int64_t bytes, std::initializer_list<uint32_t> signals = {}) {
  Command &copy = command(plan, queue, signals);
  setOperand(*copy.mutable_copy()->mutable_source(), queue == evict ? activation : hostCopy, bytes);
  setOperand(*copy.mutable_copy()->mutable_target(), queue == evict ? hostCopy : activation, bytes);
  return copy;
}

void addLink(Plan &plan, const std::string &between, double bytesPerSecond, double latency) {
  Link &link = *plan.mutable_machine()->add_links();
  link.set_between(between);
  link.set_bytes_per_second(bytesPerSecond);
  link.set_latency_seconds(latency);
}

/// Half a second and a second for each GB:
///
///   second    0   1   2   3   4   5   6   7   8   9  10  11  12  13
///   compute   forward 0  |forward 1|backward 1|......wait.....|backward 0
///   evict                |h.0            |h.1|
///   fetch                                |h.0            |
Plan evictAndFetch() {
  Plan plan = emptyPlan();
  addLink(plan, "ranks", 1, 1);
  addLink(plan, "device-host", 1e9, 0.5);
  work(plan, 3, {ready});
  wait(copy(plan, evict, 3'500'000'000, {away}), ready);
  copy(plan, evict, 500'000'000);
  work(plan, 2);
  work(plan, 2);
  wait(copy(plan, fetch, 3'500'000'000, {here}), away);
  wait(work(plan, 3), here);
  call(plan, 0);
  return plan;
}

std::vector<TimedCommand> timed(const Plan &plan, const std::vector<double> &seconds) {
  return plan::timeStep(plan.roles(0), [&](const TimedCommand &one) { return seconds[size_t(one.index)]; });
}

TEST(StepClock, StartsCommandsWhenQueueAndEventsAllow) {
  const Plan plan = evictAndFetch();
  const std::vector<double> seconds{3, 4, 1, 2, 2, 4, 3};
  const std::vector<double> starts{0, 3, 7, 3, 5, 7, 11}, latestEnds{3, 7, 14, 9, 11, 11, 14};
  const std::vector<TimedCommand> commands = timed(plan, seconds);
  ASSERT_EQ(commands.size(), 7u);
  EXPECT_EQ(lastEnd(commands), 14);
  for (const TimedCommand &one : commands) {
    EXPECT_EQ(one.start, starts[size_t(one.index)]) << one.index;
    EXPECT_EQ(one.end, one.start + seconds[size_t(one.index)]) << one.index;
    EXPECT_EQ(one.latestEnd, latestEnds[size_t(one.index)]) << one.index;
  }
}

TEST(StepClock, ADelayWithinTheSlackDoesNotLengthenTheStep) {
  const Plan plan = evictAndFetch();
  const std::vector<double> seconds{3, 4, 1, 2, 2, 4, 3};
  for (const TimedCommand &one : timed(plan, seconds)) {
    std::vector<double> delayed = seconds;
    delayed[size_t(one.index)] += one.latestEnd - one.end;
    EXPECT_EQ(lastEnd(timed(plan, delayed)), 14) << one.index;
    delayed[size_t(one.index)] += 0.5;
    EXPECT_EQ(lastEnd(timed(plan, delayed)), 14.5) << one.index;
  }
}

// Compute of micro-batch m waits for the copy of micro-batch m - delay.
TEST(StepClock, WaitsWithADelayAreForEarlierMicrobatches) {
  for (const auto &[delay, starts] :
       {std::pair(1u, std::vector<double>{0, 2, 5, 7, 10, 12}), {2u, std::vector<double>{0, 2, 2, 5, 5, 8}}}) {
    Plan plan = emptyPlan();
    wait(work(plan, 2, {ready}), away, delay);
    wait(copy(plan, evict, 3, {away}), ready);
    for (uint32_t microbatch : {0u, 1u, 2u})
      call(plan, microbatch);
    std::vector<double> found(6);
    for (const TimedCommand &one : timed(plan, {2, 3}))
      found[size_t(one.call) * 2 + size_t(one.index)] = one.start;
    EXPECT_EQ(found, starts) << delay;
  }
}

TEST(StepClock, OnlyTheStepRuns) {
  Plan plan = evictAndFetch();
  plan.mutable_roles(0)->mutable_programs(0)->set_name("evaluate");
  EXPECT_TRUE(timed(plan, {}).empty());
}

TEST(TransferTimes, AreTheLinksAndTheCostModels) {
  const Plan plan = evictAndFetch();
  const std::optional<TransferTimes> times = transferTimes(plan, plan.roles(0));
  ASSERT_TRUE(times);
  EXPECT_DOUBLE_EQ(times->alone, 9);
  EXPECT_DOUBLE_EQ(times->compute, 10);
  EXPECT_DOUBLE_EQ(times->step, 14);
  EXPECT_DOUBLE_EQ(times->stepWithout, 10);
  EXPECT_DOUBLE_EQ(times->exposed(), 4);
  EXPECT_DOUBLE_EQ(times->hidden(), 1 - 4.0 / 9);
  ASSERT_EQ(times->transfers.size(), 3u);
  const TimedTransfer &back =
      times->transfers[1].moved.direction == Transfer::Out ? times->transfers[2] : times->transfers[1];
  EXPECT_EQ(back.moved.name, "h.0");
  EXPECT_EQ(back.moved.direction, Transfer::Back);
  EXPECT_EQ(back.moved.bytes, 3'500'000'000u);
  EXPECT_DOUBLE_EQ(back.start, 7);
  EXPECT_DOUBLE_EQ(back.end, 11);
  EXPECT_DOUBLE_EQ(back.latestEnd, 11);
  EXPECT_DOUBLE_EQ(back.bytesPerSecond(), 875e6);
  EXPECT_EQ(times->transfers[0].moved.direction, Transfer::Out);
}

TEST(TransferTimes, OfNoTransfersAndOfAnUnknownLinkAreNone) {
  Plan plan = evictAndFetch();
  plan.mutable_machine()->mutable_links()->RemoveLast();
  EXPECT_EQ(unknownLink(plan), "device-host");
  EXPECT_FALSE(transferTimes(plan, plan.roles(0)));
  EXPECT_EQ(exposureTable(plan).rows().size(), 1u);
  Plan still = emptyPlan();
  addLink(still, "device-host", 1, 0);
  work(still, 1);
  call(still, 0);
  EXPECT_FALSE(transferTimes(still, still.roles(0)));
}

} // namespace
} // namespace ds::report
