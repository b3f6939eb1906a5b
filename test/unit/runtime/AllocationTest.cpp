//===- AllocationTest.cpp - a step leaves the heap alone ------------------===//
//
// DS_ALLOCATION_PLAN and DS_ALLOCATION_DATA make it judge a compiled plan instead of the one built here.
//
//===----------------------------------------------------------------------===//
#include "core/Crc32c.h"
#include "core/DType.h"
#include "kernels/ElementwiseProgram.h"
#include "kernels/KernelRegistry.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/StepReport.h"
#include "runtime/session/Training.h"
#include "runtime/trace/ProcessMemory.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/HeapWatch.h"
#include "test/unit/runtime/PipelinePlan.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/ShardedPlan.h"
#include "tools/ds-run/Progress.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

namespace ds::test {
namespace {

constexpr uint64_t lastStep = 100;

/// Watches from the end of step 1; notes live bytes after step 2 and step 100. Passes on to ds-run's own progress.
class Watcher final : public runtime::TrainingObserver {
public:
  void stepDone(const runtime::StepReport &report) noexcept override {
    progress_.stepDone(report);
    if (report.step == 1)
      watchHeap(true);
    if (report.step == 2)
      afterTwo = heapCounts();
    if (report.step == lastStep) {
      afterLast = heapCounts();
      watchHeap(false);
    }
  }
  void evaluated(const runtime::EvaluationReport &report) noexcept override { progress_.evaluated(report); }

  HeapCounts afterTwo, afterLast;

private:
  run::Progress progress_{lastStep, run::Progress::Detail::Tenths};
};

/// A product, a layer norm, softmaxes and an update, over two micro-batches, with feeds on a queue of their own. One
/// softmax is on bfloat16, whose float32 copies lie in its workspace, another brings none.
proto::Plan smallNetwork() {
  PlanBuilder b(4, 2);
  const uint32_t compute = b.queue("compute"), in = b.queue("in", proto::Queue::COPY_IN);
  const uint32_t fed = b.event("fed"), freed = b.event("freed");
  const uint32_t x = b.input("x", DType::F32, {4, 64});
  const auto w = b.variable("w", DType::F32, {64, 64}, 0.01), gamma = b.variable("gamma", DType::F32, {64}, 1),
             beta = b.variable("beta", DType::F32, {64}, 0), counter = b.variable("counter", DType::I64, {}, 0);
  const auto sample = b.tensor("x", DType::F32, {4, 64}, proto::Buffer::SLOT, 2);
  const auto h = b.tensor("h", DType::F32, {4, 64}, proto::Buffer::CALL),
             y = b.tensor("y", DType::F32, {4, 64}, proto::Buffer::CALL),
             mean = b.tensor("mean", DType::F32, {4}, proto::Buffer::CALL),
             rstd = b.tensor("rstd", DType::F32, {4}, proto::Buffer::CALL),
             loss = b.tensor("loss", DType::F32, {}, proto::Buffer::STEP);
  const uint32_t forward = b.routine("forward");
  auto &feed = b.feed(forward, in, x, sample);
  wait(feed, freed, 2);
  signal(feed, fed);
  auto &product = b.kernel(forward, compute, "matmul", "rrw", {sample, w, h});
  for (const char *name : {"trans_a", "trans_b", "bias"})
    attribute(product, name).set_integer(0);
  attribute(product, "pieces").set_integer(2);
  wait(product, fed);
  signal(product, freed);
  attribute(b.kernel(forward, compute, "layer_norm", "rrrwww", {h, gamma, beta, y, mean, rstd}), "epsilon")
      .set_number(1e-5);
  attribute(b.kernel(forward, compute, "softmax", "rw", {y, h}), "axis").set_integer(1);
  const auto half = b.tensor("half", DType::BF16, {4, 64}, proto::Buffer::CALL),
             other = b.tensor("other", DType::BF16, {4, 64}, proto::Buffer::CALL),
             copies = b.tensor("copies", DType::U8, {2 * 4 * 64 * 4}, proto::Buffer::CALL);
  auto &cast = b.kernel(forward, compute, "elementwise", "rw", {h, half});
  auto &program = *attribute(cast, "program").mutable_integers();
  for (const int64_t word :
       {int64_t(kernels::ElementwiseOp::Cast), int64_t(DType::BF16), int64_t(0), int64_t(-1), int64_t(-1)})
    program.add_values(word);
  attribute(cast, "constants").mutable_numbers();
  attribute(cast, "results").mutable_integers()->add_values(1);
  attribute(b.kernel(forward, compute, "softmax", "rws", {half, other, copies}), "axis").set_integer(1);
  attribute(b.kernel(forward, compute, "softmax", "rw", {other, half}), "axis").set_integer(0);
  auto &axes = *attribute(b.kernel(forward, compute, "reduce_sum", "rw", {h, loss}), "axes").mutable_integers();
  axes.add_values(0);
  axes.add_values(1);
  b.kernel(forward, compute, "increment", "m", {counter});
  for (const char *name : {"step", "evaluate"}) {
    const uint32_t program = b.program(name);
    b.call(program, forward, 0);
    b.call(program, forward, 1);
    b.metric(program, "loss", loss);
  }
  return b.plan;
}

TEST(Allocation, HooksSeeOurAllocations) {
  watchHeap(true);
  const auto own = std::make_unique<std::vector<int>>(1000);
  watchHeap(false);
  EXPECT_GE(heapCounts().ours, 2u);
  EXPECT_EQ(heapCounts().libraries, 0u);
  const int64_t before = heapCounts().liveBytes;
  own->resize(100000);
  EXPECT_GT(heapCounts().liveBytes, before + 300000);
}

TEST(Allocation, StepsAfterTheFirstAllocateNothing) {
  const TemporaryFolder folder;
  runtime::TrainingOptions options;
  options.steps = lastStep;
  options.metrics = folder / "m.jsonl";
  options.threads = 2;
  options.trace = folder / "t.json";
  if (const char *plan = std::getenv("DS_ALLOCATION_PLAN")) {
    options.planPath = plan;
    options.data = {std::getenv("DS_ALLOCATION_DATA")};
  } else {
    options.planPath = folder / "p.dsplan";
    options.data = {folder / "d"};
    options.shuffle = true;
    options.evaluationData = options.data;
    options.evaluationInterval = 7;
    plan::writePlanFile(options.planPath, smallNetwork());
    writeFile(options.data[0],
              safetensors(R"({"x":{"dtype":"U8","shape":[16,64],"data_offsets":[0,1024]}})", std::string(1024, '\3')));
  }
  runtime::Training training(options, kernels::cpuKernels());
  Watcher watcher;
  const std::atomic<bool> stop = false;
  training.run(watcher, stop);
  EXPECT_EQ(watcher.afterLast.ours, 0u);
  if (watcher.afterLast.ours > 0)
    printFirstOwnAllocation();
  EXPECT_EQ(watcher.afterLast.liveBytes, watcher.afterTwo.liveBytes);
  RecordProperty("library_allocations", int(watcher.afterLast.libraries));
}

/// A run of a plan by hand, whose steps must allocate nothing.
void expectNoAllocations(const PlanBuilder &builder) {
  const TemporaryFolder folder;
  runtime::TrainingOptions options;
  options.planPath = folder / "p.dsplan";
  options.data = {folder / "d"};
  options.steps = lastStep;
  options.threads = 2;
  plan::writePlanFile(options.planPath, builder.plan);
  writeShardedData(options.data[0]);
  runtime::Training training(options, kernels::cpuKernels());
  Watcher watcher;
  const std::atomic<bool> stop = false;
  training.run(watcher, stop);
  EXPECT_EQ(watcher.afterLast.ours, 0u);
  if (watcher.afterLast.ours > 0)
    printFirstOwnAllocation();
  EXPECT_EQ(watcher.afterLast.liveBytes, watcher.afterTwo.liveBytes);
}

TEST(Allocation, StepsOfSeveralRanksAllocateNothing) { expectNoAllocations(shardedPlan(3, 2)); }

TEST(Allocation, StepsOfAPipelineAllocateNothing) { expectNoAllocations(pipelinePlan(4)); }

TEST(Memory, LoadingWeightsLeavesNoAnonymousCopy) {
  const TemporaryFolder folder;
  constexpr int64_t elements = 16 << 20; // 64 MiB
  const std::string contents(size_t(elements) * 4, '\1');
  writeFile(folder / "w.bin", contents);
  PlanBuilder b;
  b.variable("w", DType::F32, {elements}, 0);
  auto &file = *b.plan.add_weight_files();
  file.set_path("w.bin");
  file.set_size(contents.size());
  file.set_crc32c(crc32c(std::as_bytes(std::span(contents))));
  b.plan.mutable_variables(0)->mutable_source()->mutable_range()->set_length(contents.size());
  b.program("step");
  plan::writePlanFile(folder / "p.dsplan", b.plan);
  const uint64_t before = runtime::anonymousResidentBytes();
  runtime::TrainingOptions options;
  options.planPath = folder / "p.dsplan";
  options.steps = 1;
  const runtime::Training training(options, kernels::cpuKernels());
  const runtime::SummaryReport summary = training.summary();
  EXPECT_EQ(summary.deviceBytes, contents.size());
  EXPECT_EQ(summary.deviceTouchedBytes, contents.size());
  EXPECT_LE(summary.anonymousResidentBytes, before + contents.size() + (8 << 20));
}

} // namespace
} // namespace ds::test
