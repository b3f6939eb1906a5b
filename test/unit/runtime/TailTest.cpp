//===- TailTest.cpp - steps that are made again, and next values ----------===//
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/StateShares.h"
#include "runtime/comm/inprocess/InProcessTransport.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/null/NullDevice.h"
#include "runtime/executor/Executor.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/StepClock.h"
#include "runtime/session/Training.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/TailPlan.h"
#include "test/unit/runtime/TestKernels.h"

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using runtime::CpuDevice;
using runtime::Executor;
using runtime::Training;

std::vector<float> elementsOf(const Executor &executor, uint32_t variable) {
  std::vector<float> elements;
  executor.readVariable(variable, [&](std::span<const std::byte> part) {
    elements.resize(elements.size() + part.size() / sizeof(float));
    std::memcpy(&elements[elements.size() - part.size() / sizeof(float)], part.data(), part.size());
  });
  return elements;
}

/// What a rank holds after some steps, of losses that decide whether each was made again.
struct State {
  float p = 1, m = 0;

  void step(float loss) {
    m += loss == 1 ? 1 : 10;
    p -= m;
  }
  void expectIn(const Executor &executor) const {
    EXPECT_EQ(elementsOf(executor, 0), std::vector<float>(tailElements, p));
    EXPECT_EQ(elementsOf(executor, 1), std::vector<float>(tailElements, m));
  }
};

/// Losses of the steps, each spread evenly over the ranks' samples.
class TailTest : public testing::Test {
protected:
  explicit TailTest(std::vector<float> losses = {1, 2, 1, 1, 0, 1}) : losses_(std::move(losses)) {
    options.planPath = folder / "p.dsplan";
    options.data = {folder / "d"};
    options.steps = losses_.size();
    options.makeDevice = [this](uint32_t rank) {
      return std::make_unique<CpuDevice>(runtime::NvmePlace{
          .folder = folder / "", .rank = rank, .options = {.blockBytes = 4096, .queueDepth = 2, .checksums = true}});
    };
  }

  void run(const PlanBuilder &builder) {
    const uint64_t ranks = builder.plan.training().train_batch_size();
    std::vector<float> samples;
    for (const float loss : losses_)
      samples.insert(samples.end(), ranks, loss / float(ranks));
    const std::string count = std::to_string(samples.size()), bytes = std::to_string(4 * samples.size());
    writeFile(folder / "d",
              safetensors(R"({"x":{"dtype":"F32","shape":[)" + count + R"(,1],"data_offsets":[0,)" + bytes + "]}}",
                          bytesOf(samples)));
    plan::writePlanFile(options.planPath, builder.plan);
    training.reset();
    training.emplace(options, testKernels());
    training->run(nobody, stop);
  }
  const Executor &rank(uint32_t number) { return *training->localRanks().find(number); }

  struct Nobody final : runtime::TrainingObserver {
    void stepDone(const runtime::StepReport &report) noexcept override {
      losses.push_back(report.loss ? float(report.loss->asDouble()) : 0);
    }
    void evaluated(const runtime::EvaluationReport &) noexcept override {}
    std::vector<float> losses;
  } nobody;
  TemporaryFolder folder;
  runtime::TrainingOptions options;
  std::optional<Training> training;
  std::atomic<bool> stop = false;
  std::vector<float> losses_;
};

TEST_F(TailTest, AStepIsMadeAgainWhereItsScalarIsNotOne) {
  for (const uint32_t ranks : {1, 2}) {
    run(tailPlan(ranks));
    State state;
    for (const float loss : losses_)
      state.step(loss);
    for (uint32_t i = 0; i < ranks; ++i)
      state.expectIn(rank(i));
    EXPECT_EQ(training->localRanks().stepsRedone(), 2u);
    EXPECT_EQ(nobody.losses, losses_);
    nobody.losses.clear();
  }
}

TEST_F(TailTest, MetricsSayWhichStepsWereMadeAgain) {
  options.metrics = folder / "m.jsonl";
  run(tailPlan(1));
  std::vector<bool> redone;
  uint64_t counted = 0;
  for (const std::string &text : readLines(options.metrics)) {
    const auto line = nlohmann::json::parse(text);
    if (line.contains("summary"))
      counted = line["summary"]["ranks"][0]["steps_redone"];
    else
      redone.push_back(line.value("redone", false));
  }
  EXPECT_EQ(redone, std::vector<bool>({false, true, false, false, true, false}));
  EXPECT_EQ(counted, 2u);
}

TEST_F(TailTest, AnEvaluationExchangesNothing) {
  options.evaluationInterval = 1;
  options.evaluationData = {folder / "d"};
  run(tailPlan(2));
  State state;
  for (const float loss : losses_)
    state.step(loss);
  state.expectIn(rank(1));
}

TEST_F(TailTest, StandsUnderChecks) {
  options.checkMemory = options.checkNumerics = true;
  run(tailPlan(2));
  State state;
  for (const float loss : losses_)
    state.step(loss);
  state.expectIn(rank(1));
}

TEST_F(TailTest, AFailureInItEndsTheRun) {
  EXPECT_ERROR(run(failingTailPlan(2)), "the test asked for it");
  EXPECT_EQ(nobody.losses, std::vector<float>{1}) << "the tail of step 2 fails";
  EXPECT_EQ(elementsOf(rank(0), 1), std::vector<float>(tailElements, 1)) << "exchanged though the run failed";
}

/// A step whose loss is not finite makes its tail, and is undone: also the exchange.
TEST_F(TailTest, AStepThatIsUndoneIsExchangedBack) {
  losses_ = {1, std::numeric_limits<float>::infinity(), 1, std::numeric_limits<float>::quiet_NaN(), 2};
  options.steps = losses_.size();
  options.onNonFinite = runtime::OnNonFinite::Skip;
  run(tailPlan(2));
  State state;
  for (const float loss : losses_)
    if (std::isfinite(loss))
      state.step(loss);
  state.expectIn(rank(0));
  state.expectIn(rank(1));
  EXPECT_EQ(training->localRanks().stepsRedone(), 3u);
}

/// A buffer of 3 bytes makes the copy last as long as the disk: the next step waits before it writes the next moment.
TEST_F(TailTest, CheckpointsBesideTheNextStepAreThoseWithout) {
  PlanBuilder builder = tailPlan(2);
  const auto textOf = [&](const std::string &saved, uint64_t step, uint32_t rank) {
    return readFile(saved + "/" + runtime::checkpointName(step) + "/" + runtime::rankFileName(rank));
  };
  builder.plan.mutable_training()->set_checkpoint_buffer_bytes(3);
  options.saving = {.folder = folder / "beside", .interval = 1, .keep = 0};
  run(builder);
  builder.plan.mutable_training()->set_checkpoint_buffer_bytes(1 << 20);
  for (uint64_t step = 1; step <= losses_.size(); ++step) {
    options.steps = step;
    options.saving = {.folder = folder / "after", .interval = 0, .keep = 0};
    run(builder);
    for (const uint32_t rank : {0, 1})
      EXPECT_EQ(textOf(folder / "beside", step, rank), textOf(folder / "after", step, rank)) << step << " " << rank;
  }
}

TEST_F(TailTest, ResumesFromACheckpoint) {
  options.steps = 2;
  options.saving = {.folder = folder / "s", .interval = 0, .keep = 0};
  run(tailPlan(2));
  options.steps = losses_.size();
  options.saving = {};
  options.resume = folder / "s";
  run(tailPlan(2));
  State state;
  for (const float loss : losses_)
    state.step(loss);
  state.expectIn(rank(0));
}

/// The moment's next is what the step writes first; the parameter comes behind it.
TEST(Tail, StateIsSavedInTheOrderOfWrites) {
  const PlanBuilder builder = tailPlan(1);
  const auto parts = runtime::shareState(builder.plan).parts[0];
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].variable, 1u);
  EXPECT_EQ(parts[1].variable, 0u);
}

TEST(Tail, ANullDeviceMakesNone) {
  const PlanBuilder builder = tailPlan(1);
  runtime::NullDevice device;
  runtime::InProcessTransport transport(1);
  Executor executor(builder.plan, device, testKernels(), {.transport = &transport});
  EXPECT_TRUE(executor.execute({}).ok());
  EXPECT_EQ(device.walkedTasks(), 9u);
}

TEST(Tail, AStepOfTheClockIsWithoutIt) {
  const PlanBuilder builder = tailPlan(1);
  const auto commands = plan::timeStep(builder.plan.roles(0), [](const plan::TimedCommand &) { return 1.0; });
  EXPECT_EQ(commands.size(), 9u);
  for (const plan::TimedCommand &timed : commands)
    EXPECT_LT(timed.call, 3);
}

TEST(Tail, IsRenumberedWithThePlanOfASize) {
  proto::Plan plan = tailPlan(1).plan;
  const int shared = plan::sharedBuffers(plan.roles(0));
  const uint32_t scalar = plan.roles(0).programs(0).tail().unless_one().buffer();
  proto::Role &own = *plan.add_shorter()->add_roles();
  *own.mutable_programs() = plan.roles(0).programs();
  own.mutable_buffers()->Add(plan.roles(0).buffers().begin() + shared, plan.roles(0).buffers().end());
  const uint32_t by = uint32_t(own.buffers_size());
  const proto::Plan all = plan::withProgramsOfAllSizes(plan);
  EXPECT_EQ(all.roles(0).programs(2).tail().unless_one().buffer(), scalar + by);
  EXPECT_EQ(all.roles(0).buffers(2).next_of(), 1u);
}

} // namespace
} // namespace ds::test
