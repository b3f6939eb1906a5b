//===- SimulatorTest.cpp - a run without its work -------------------------===//
#include "runtime/plan/run/Simulator.h"
#include "runtime/plan/world/RolePeers.h"
#include "test/unit/runtime/PipelinePlan.h"

#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds::plan {
namespace {

using test::pipelinePlan;

/// What happened, in its order.
struct Recorder : RunObserver {
  void executed(const Instance &instance) override { done.push_back(instance); }
  std::vector<Instance> done;
};

size_t commandsOf(const proto::Role &role) {
  size_t count = 0;
  for (const proto::Call &call : role.programs(0).calls())
    count += size_t(role.routines(int(call.routine())).commands_size());
  return count;
}

TEST(Simulator, ExecutesEveryCommandInTheOrderOfItsQueue) {
  const proto::Plan plan = pipelinePlan(5).plan;
  RolePeers peers(plan);
  Recorder recorder;
  EXPECT_FALSE(simulate(plan, "step", peers, &recorder));
  EXPECT_EQ(recorder.done.size(), commandsOf(plan.roles(0)) + commandsOf(plan.roles(1)));
  std::map<std::pair<uint32_t, uint32_t>, Instance> last; // by role and queue
  for (const Instance &one : recorder.done) {
    const auto [before, isFirst] = last.try_emplace({one.role, one.queue}, one);
    EXPECT_EQ(one.position, isFirst ? 1 : before->second.position + 1);
    EXPECT_GE(std::pair(one.call, one.index), std::pair(before->second.call, before->second.index));
    before->second = one;
  }
}

TEST(Simulator, SendsAMessageBeforeItIsReceivedAndAfterItsReceiverHasCome) {
  const proto::Plan plan = pipelinePlan(5).plan;
  RolePeers peers(plan);
  Recorder recorder;
  EXPECT_FALSE(simulate(plan, "step", peers, &recorder));
  std::map<uint32_t, std::pair<int, int>> messages; // by channel: sent, received
  for (const Instance &one : recorder.done) {
    if (one.command->has_send())
      ++messages[one.command->send().channel()].first;
    if (one.command->has_receive()) {
      auto &[sent, received] = messages[one.command->receive().channel()];
      EXPECT_LT(received++, sent);
    }
  }
  EXPECT_FALSE(messages.empty());
  for (const auto &[channel, counts] : messages)
    EXPECT_EQ(counts.first, counts.second) << channel;
}

// The reader looks at fewer commands than the checker; both must come to the same end.
TEST(Simulator, NamesTheSameDeadlockWithAndWithoutAnObserver) {
  proto::Plan plan = pipelinePlan(5).plan;
  for (proto::Routine &routine : *plan.mutable_roles(0)->mutable_routines())
    if (routine.name() == "forward")
      routine.mutable_commands(1)->clear_signals();
  RolePeers peers(plan);
  Recorder recorder;
  const std::optional<Deadlock> all = simulate(plan, "step", peers, &recorder);
  const std::optional<Deadlock> some = simulate(plan, "step", peers, nullptr);
  ASSERT_TRUE(all && some);
  ASSERT_NE(all->wait, nullptr);
  EXPECT_EQ(all->wait, some->wait);
  EXPECT_EQ(all->instance.command, some->instance.command);
  EXPECT_EQ(all->instance.call, some->instance.call);
  EXPECT_EQ(std::pair(all->value, all->wanted), std::pair(some->value, some->wanted));
  EXPECT_LT(all->value, all->wanted);
}

} // namespace
} // namespace ds::plan
