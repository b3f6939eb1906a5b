//===- AcceleratorTest.cpp - plans on a device whose memory is its own ----===//
//
// What the host does for a GPU, tested without one: the fake's device memory faults when the host touches it.
//
//===----------------------------------------------------------------------===//
#include "core/DType.h"
#include "core/Error.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/session/Training.h"
#include "test/unit/runtime/FakeAccelerator.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/TestKernels.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using runtime::Training;
using runtime::TrainingOptions;

class Losses final : public runtime::TrainingObserver {
public:
  void stepDone(const runtime::StepReport &report) noexcept override { losses.push_back(report.loss->asDouble()); }
  void evaluated(const runtime::EvaluationReport &report) noexcept override {
    losses.push_back(report.loss->asDouble());
  }
  std::vector<double> losses;
};

/// p -= sum of a step's samples, three micro-batches that are fed ahead on a queue of their own; `seen` is what kernels
/// are told of seed, step and micro-batch.
class Accelerator : public testing::Test {
protected:
  Accelerator() : builder(1, 3) {
    const uint32_t compute = builder.queue("compute"), in = builder.queue("in", proto::Queue::COPY_IN);
    const uint32_t fed = builder.event("fed"), freed = builder.event("freed");
    const uint32_t x = builder.input("x", DType::F32, {1, 2});
    const auto parameter = builder.variable("p", DType::F32, {}, 1);
    const auto seen = builder.variable("seen", DType::I64, {3}, 0);
    const auto sample = builder.tensor("x", DType::F32, {1, 2}, proto::Buffer::SLOT, 2);
    const auto sum = builder.tensor("sum", DType::F32, {}, proto::Buffer::CALL);
    const auto total = builder.tensor("total", DType::F32, {}, proto::Buffer::STEP);
    const uint32_t begin = builder.routine("begin"), feed = builder.routine("feed"),
                   forward = builder.routine("forward"), update = builder.routine("update");
    builder.fill(begin, compute, total);
    proto::Command &load = builder.feed(feed, in, x, sample);
    wait(load, freed, 2);
    signal(load, fed);
    proto::Command &add = builder.kernel(forward, compute, "sum", "rw", {sample, sum});
    wait(add, fed);
    signal(add, freed);
    builder.kernel(forward, compute, "accumulate", "rm", {sum, total});
    builder.kernel(update, compute, "subtract", "rm", {total, parameter});
    builder.kernel(update, compute, "context", "w", {seen});
    for (const char *name : {"step", "evaluate"}) {
      const uint32_t program = builder.program(name);
      builder.call(program, begin);
      for (uint32_t m = 0; m < 3; ++m)
        builder.call(program, feed, m);
      for (uint32_t m = 0; m < 3; ++m)
        builder.call(program, forward, m);
      if (std::string_view(name) == "step")
        builder.call(program, update, 2);
      builder.metric(program, "loss", total);
    }
    std::vector<float> data;
    for (int i = 0; i < 10; ++i)
      data.insert(data.end(), 2, float(i * i) / 3);
    writeFile(folder / "d",
              safetensors(R"({"x":{"dtype":"F32","shape":[10,2],"data_offsets":[0,80]}})", bytesOf(data)));
    options.planPath = folder / "p.dsplan";
    options.data = {folder / "d"};
    options.exportPath = folder / "w";
    options.steps = 6;
  }

  /// The losses of a run on the processor, or on a fake accelerator, and the bytes of its export.
  std::pair<std::vector<double>, std::string> run(bool onFake, bool records = true) {
    plan::writePlanFile(options.planPath, builder.plan);
    counts = {};
    options.makeDevice = nullptr;
    options.device = onFake ? "null" : "cpu"; // the one that runs any plan, and is not made
    if (onFake)
      options.makeDevice = [this, records](uint32_t) { return fakeAccelerator(counts, records); };
    Training training(options, onFake ? onAccelerator<testKernels>() : testKernels());
    Losses observer;
    const std::atomic<bool> stop = false;
    training.run(observer, stop);
    return {observer.losses, readFile(options.exportPath)};
  }

  /// From then on it is no plan for the processor.
  void capture(int program) {
    builder.plan.mutable_machine()->set_device("cuda");
    builder.plan.mutable_roles(0)->mutable_programs(program)->set_captured(true);
  }

  TemporaryFolder folder;
  PlanBuilder builder;
  TrainingOptions options;
  FakeCounts counts;
};

TEST_F(Accelerator, GivesTheBitsOfTheProcessor) {
  EXPECT_EQ(run(true), run(false));
  EXPECT_EQ(counts.recordings, 0u);
}

TEST_F(Accelerator, RecordsAtTheSecondRunAndLaunchesFromThenOn) {
  const auto expected = run(false);
  capture(0);
  EXPECT_EQ(run(true), expected);
  EXPECT_EQ(counts.recordings, 1u);
  EXPECT_EQ(counts.launches, 5u);
  // A fill, three copies, three times two kernels, two of the update: the first step alone was enqueued.
  EXPECT_EQ(counts.enqueued, 12u);
}

TEST_F(Accelerator, RecordsEachProgramForItself) {
  options.evaluationData = options.data;
  options.evaluationInterval = 1;
  const auto expected = run(false);
  capture(0);
  capture(1);
  EXPECT_EQ(run(true), expected);
  EXPECT_EQ(counts.recordings, 2u);
}

TEST_F(Accelerator, EnqueuesWhereTheDeviceRecordsNothing) {
  const auto expected = run(false);
  capture(0);
  EXPECT_EQ(run(true, /*records=*/false), expected);
  EXPECT_EQ(counts.recordings, 0u);
  EXPECT_EQ(counts.enqueued, 6 * 12u);
}

TEST_F(Accelerator, IsCheckedAndTracedCommandByCommand) {
  const auto expected = run(false);
  capture(0);
  options.checkMemory = options.checkNumerics = true;
  options.trace = folder / "t.json";
  EXPECT_EQ(run(true), expected);
  EXPECT_EQ(counts.recordings, 0u);
}

TEST_F(Accelerator, FindsTheNaNInItsMemory) {
  builder.kernel(2, 0, "nan", "w", {builder.tensor("hole", DType::F32, {2}, proto::Buffer::CALL)});
  options.checkNumerics = true;
  try {
    (void)run(true);
    FAIL() << "it ran";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("--check-numerics: in micro-batch 0 it wrote NaN at [1] of hole"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(Accelerator, ReportsTheCommandThatRefusedAValue) {
  const auto scalar = builder.tensor("any", DType::F32, {}, proto::Buffer::CALL);
  builder.implements(builder.kernel(2, 0, "fail", "w", {scalar}), "h.3.embedding");
  try {
    (void)run(true);
    FAIL() << "it ran";
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "rank 0, h.3.embedding (kernel fail): it refuses 7");
  }
}

} // namespace
} // namespace ds::test
