//===- ExecutorTest.cpp - hand-built plans on the cpu ---------------------===//
#include "runtime/executor/Executor.h"

#include "core/DType.h"
#include "core/Status.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/InputSpec.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/null/NullDevice.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/TestKernels.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using runtime::CpuDevice;
using runtime::Executor;
using runtime::ExecutorOptions;

/// A validated plan, ready to run on the cpu.
struct Prepared {
  explicit Prepared(const PlanBuilder &builder, ExecutorOptions options = {.threads = 2}) : plan(builder.plan) {
    plan::validatePlan(plan);
    executor = std::make_unique<Executor>(plan, device, testKernels(), options);
    executor->initialize(runtime::VariableSources(plan, {}));
  }

  Status run(uint64_t step = 0, const runtime::Dataset *data = nullptr) {
    return executor->execute({.program = 0,
                              .seed = 5,
                              .step = step,
                              .data = data,
                              .firstSample = step * plan.training().train_batch_size()});
  }
  double metric(const char *name) { return executor->metric(0, name)->asDouble(); }
  template <typename T> std::vector<T> variable(uint32_t index) {
    std::string bytes;
    executor->readVariable(index, [&](std::span<const std::byte> part) {
      bytes.append(reinterpret_cast<const char *>(part.data()), part.size());
    });
    std::vector<T> elements(bytes.size() / sizeof(T));
    std::memcpy(elements.data(), bytes.data(), bytes.size());
    return elements;
  }

  proto::Plan plan;
  CpuDevice device;
  std::unique_ptr<Executor> executor;
};

/// `samples` samples of 4 floats; sample i is i, i, i, i.
std::string countingSamples(int samples) {
  std::vector<float> data;
  for (int i = 0; i < samples; ++i)
    data.insert(data.end(), 4, float(i));
  return safetensors(R"({"x":{"dtype":"F32","shape":[)" + std::to_string(samples) + R"(,4],"data_offsets":[0,)" +
                         std::to_string(samples * 16) + "]}}",
                     bytesOf(data));
}

runtime::InputSpec inputX() { return {.name = "x", .dtype = DType::F32, .sampleShape = {4}}; }

TEST(Executor, AccumulatesOverMicrobatchesAndUpdates) {
  const TemporaryFolder folder;
  writeFile(folder / "x.safetensors", countingSamples(6));
  const runtime::Dataset data({inputX()}, {folder / "x.safetensors"}, {});
  PlanBuilder b(1, 3);
  const uint32_t compute = b.queue("compute");
  const uint32_t x = b.input("x", DType::F32, {1, 4});
  const auto parameter = b.variable("p", DType::F32, {}, 100);
  const auto sample = b.tensor("x", DType::F32, {1, 4}, proto::Buffer::CALL);
  const auto sum = b.tensor("sum", DType::F32, {}, proto::Buffer::CALL);
  const auto total = b.tensor("total", DType::F32, {}, proto::Buffer::STEP);
  const uint32_t begin = b.routine("begin"), forward = b.routine("forward"), update = b.routine("update");
  b.fill(begin, compute, total);
  b.feed(forward, compute, x, sample);
  b.kernel(forward, compute, "sum", "rw", {sample, sum});
  b.kernel(forward, compute, "accumulate", "rm", {sum, total});
  b.kernel(update, compute, "subtract", "rm", {total, parameter});
  const uint32_t step = b.program("step");
  b.call(step, begin);
  for (uint32_t m = 0; m < 3; ++m)
    b.call(step, forward, m);
  b.call(step, update, 2);
  b.metric(step, "loss", total);
  Prepared prepared(b);
  EXPECT_TRUE(prepared.run(0, &data).ok());
  EXPECT_EQ(prepared.metric("loss"), 4 * (0 + 1 + 2));
  EXPECT_TRUE(prepared.run(1, &data).ok());
  EXPECT_EQ(prepared.metric("loss"), 4 * (3 + 4 + 5));
  EXPECT_EQ(prepared.variable<float>(0), std::vector<float>{100 - 12 - 48});
  EXPECT_TRUE(prepared.run(2, &data).ok()); // round the end: samples 0, 1, 2 again
  EXPECT_EQ(prepared.metric("loss"), 12);
}

TEST(Executor, GivesKernelsSeedStepAndMicrobatch) {
  PlanBuilder b(1, 4);
  const uint32_t compute = b.queue("compute");
  const auto seen = b.variable("seen", DType::I64, {3}, 0);
  const uint32_t forward = b.routine("forward");
  b.kernel(forward, compute, "context", "w", {seen});
  const uint32_t step = b.program("step");
  for (uint32_t m = 0; m < 4; ++m)
    b.call(step, forward, m);
  Prepared prepared(b);
  EXPECT_TRUE(prepared.run(7).ok());
  EXPECT_EQ(prepared.variable<int64_t>(0), (std::vector<int64_t>{5, 7, 3}));
}

TEST(Executor, SpreadsKernelsOverItsThreads) {
  PlanBuilder b;
  const uint32_t compute = b.queue("compute");
  const auto out = b.variable("out", DType::I64, {1000}, -1);
  b.kernel(b.routine("forward"), compute, "spread", "w", {out});
  b.call(b.program("step"), 0);
  for (int threads : {1, 2, 3}) {
    Prepared prepared(b, {.threads = threads});
    EXPECT_TRUE(prepared.run().ok());
    EXPECT_EQ(prepared.variable<int64_t>(0)[999], 999);
  }
}

/// Feeds run ahead on their own queue: the feed of micro-batch m is issued in a call before the forward call of m - 1,
/// which waits for it by (fed, 0); the feed itself waits by (freed, 2) until the slot that it fills is free.
PlanBuilder prefetchPlan(uint32_t microbatches, bool wobble) {
  PlanBuilder b(1, microbatches);
  const uint32_t compute = b.queue("compute"), in = b.queue("in", proto::Queue::COPY_IN);
  const uint32_t fed = b.event("fed"), freed = b.event("freed");
  const uint32_t x = b.input("x", DType::F32, {1, 4});
  const auto sample = b.tensor("x", DType::F32, {1, 4}, proto::Buffer::SLOT, 2);
  const auto sum = b.tensor("sum", DType::F32, {}, proto::Buffer::SLOT, 2);
  const auto total = b.tensor("total", DType::F32, {}, proto::Buffer::STEP);
  const uint32_t begin = b.routine("begin"), load = b.routine("load"), forward = b.routine("forward");
  b.fill(begin, compute, total);
  auto &feed = b.feed(load, in, x, sample);
  wait(feed, freed, 2);
  auto &fedCommand = wobble ? b.kernel(load, in, "wobble", "r", {sample}) : feed;
  signal(fedCommand, fed);
  auto &first = wobble ? b.kernel(forward, compute, "wobble", "r", {sample})
                       : b.kernel(forward, compute, "sum", "rw", {sample, sum});
  wait(first, fed);
  if (wobble)
    b.kernel(forward, compute, "sum", "rw", {sample, sum});
  // The slot is freed by the command that reads it last.
  signal(*b.role().mutable_routines(int(forward))->mutable_commands(wobble ? 1 : 0), freed);
  b.kernel(forward, compute, "accumulate", "rm", {sum, total});
  const uint32_t step = b.program("step");
  b.call(step, begin);
  b.call(step, load, 0);
  for (uint32_t m = 0; m < microbatches; ++m) {
    if (m + 1 < microbatches)
      b.call(step, load, m + 1);
    b.call(step, forward, m);
  }
  b.metric(step, "loss", total);
  const int last = b.role().routines(int(forward)).commands_size() - 1;
  b.life(sample, step, load, 0, forward, uint32_t(last - 1));
  b.life(sum, step, forward, uint32_t(last - 1), forward, uint32_t(last));
  b.life(total, step, begin, 0, forward, uint32_t(last));
  return b;
}

TEST(Executor, FeedsAheadAcrossCalls) {
  const TemporaryFolder folder;
  writeFile(folder / "x.safetensors", countingSamples(64));
  const runtime::Dataset data({inputX()}, {folder / "x.safetensors"}, {});
  for (const bool wobble : {false, true})
    for (const bool check : {false, true}) {
      Prepared prepared(prefetchPlan(16, wobble), {.threads = 2, .checkMemory = check});
      for (uint64_t step = 0; step < 4; ++step) {
        ASSERT_TRUE(prepared.run(step, &data).ok()) << prepared.device.failure().message();
        const double first = double(step) * 16;
        EXPECT_EQ(prepared.metric("loss"), 4 * (16 * first + 120)) << wobble << check;
      }
    }
}

TEST(Executor, TwoQueuesInTurns) {
  // Queue b adds to p after queue a of the same micro-batch, and a after b of the micro-batch before: p = p + 1 on a,
  // p = p * 2 (p += p) on b, eight times.
  PlanBuilder b(1, 8);
  const uint32_t qa = b.queue("a"), qb = b.queue("b");
  const uint32_t adone = b.event("a done"), bdone = b.event("b done");
  const auto p = b.variable("p", DType::F32, {}, 0), one = b.variable("one", DType::F32, {}, 1);
  const uint32_t forward = b.routine("forward");
  auto &waitA = b.kernel(forward, qa, "wobble", "r", {p});
  wait(waitA, bdone, 1);
  signal(b.kernel(forward, qa, "accumulate", "rm", {one, p}), adone);
  auto &waitB = b.kernel(forward, qb, "wobble", "r", {one});
  wait(waitB, adone);
  signal(b.kernel(forward, qb, "accumulate", "rm", {p, p}), bdone);
  const uint32_t step = b.program("step");
  for (uint32_t m = 0; m < 8; ++m)
    b.call(step, forward, m);
  Prepared prepared(b);
  double expected = 0;
  for (uint64_t s = 0; s < 10; ++s) {
    ASSERT_TRUE(prepared.run(s).ok());
    for (int m = 0; m < 8; ++m)
      expected = float(2 * (expected + 1));
    EXPECT_EQ(prepared.variable<float>(0)[0], float(expected)) << s;
  }
}

TEST(Executor, CopiesBetweenArenas) {
  PlanBuilder b;
  const uint32_t compute = b.queue("compute"), out = b.queue("out", proto::Queue::COPY_OUT);
  const uint32_t filled = b.event("filled");
  const auto source = b.variable("source", DType::F32, {4}, 3), target = b.variable("target", DType::F32, {4}, 0);
  b.role().add_arenas()->set_space("host");
  b.role().mutable_arenas(1)->set_bytes(64);
  b.role().mutable_buffers(int(target.buffer))->set_arena(1);
  b.role().mutable_buffers(int(target.buffer))->set_offset(0);
  const uint32_t forward = b.routine("forward");
  signal(b.kernel(forward, compute, "accumulate", "rm", {source, source}), filled);
  wait(b.copy(forward, out, source, target), filled);
  b.call(b.program("step"), forward);
  Prepared prepared(b);
  EXPECT_TRUE(prepared.run().ok());
  EXPECT_EQ(prepared.variable<float>(1), (std::vector<float>{6, 6, 6, 6}));
  EXPECT_EQ(prepared.device.allocatedBytes("host"), 64u);
  EXPECT_EQ(prepared.device.allocatedBytes("device"), 128u);
}

/// A kernel that fails while another queue waits for it and a third is busy.
TEST(Executor, AFailureEndsTheRunWithItsText) {
  PlanBuilder b(1, 4);
  const uint32_t compute = b.queue("compute"), other = b.queue("other"), third = b.queue("third");
  const uint32_t done = b.event("done");
  const auto p = b.variable("p", DType::F32, {}, 0), q = b.variable("q", DType::F32, {}, 0);
  const uint32_t forward = b.routine("forward");
  auto &bad = b.kernel(forward, compute, "fail", "r", {p});
  b.implements(bad, "h.3.mlp/c_fc");
  signal(bad, done);
  wait(b.kernel(forward, other, "accumulate", "rm", {p, p}), done);
  b.kernel(forward, third, "wobble", "r", {q});
  const uint32_t step = b.program("step");
  for (uint32_t m = 0; m < 4; ++m)
    b.call(step, forward, m);
  Prepared prepared(b);
  EXPECT_STREQ(prepared.run().message(), "rank 0, h.3.mlp/c_fc (kernel fail): the test asked for it");
  EXPECT_STREQ(prepared.run().message(), "rank 0, h.3.mlp/c_fc (kernel fail): the test asked for it");
}

TEST(Executor, RefusesKernelsThatAreNotThere) {
  PlanBuilder b;
  const uint32_t compute = b.queue("compute");
  const auto p = b.variable("p", DType::F32, {}, 0);
  b.kernel(b.routine("forward"), compute, "flash", "r", {p});
  EXPECT_ERROR(Prepared{b}, "routine forward, command 0: there is no kernel flash for this device");
}

TEST(Executor, NamesTheOpThatAKernelRefuses) {
  PlanBuilder b;
  const uint32_t compute = b.queue("compute");
  const auto p = b.variable("p", DType::F32, {}, 0);
  b.implements(b.kernel(b.routine("forward"), compute, "sum", "r", {p}), "h.0");
  EXPECT_ERROR(Prepared{b}, "h.0 (kernel sum): it has 1 operands, not 2");
}

TEST(Executor, RefusesArenasBeyondTheMachine) {
  PlanBuilder b;
  b.role().mutable_arenas(0)->set_bytes(uint64_t(1) << 45);
  EXPECT_ERROR(Prepared{b}, "the plan's arenas need 35184372088832 bytes, but this machine has");
}

TEST(CheckMemory, NamesABufferThatIsReadUnwritten) {
  PlanBuilder b;
  const uint32_t compute = b.queue("compute");
  const auto x = b.tensor("h.0.ln", DType::F32, {4}, proto::Buffer::CALL);
  const auto sum = b.variable("sum", DType::F32, {}, 0);
  const uint32_t forward = b.routine("forward");
  b.kernel(forward, compute, "sum", "rw", {x, sum});
  const uint32_t step = b.program("step");
  b.call(step, forward);
  b.life(x, step, forward, 0, forward, 0);
  EXPECT_TRUE(Prepared(b).run().ok());
  EXPECT_THAT_CONTAINS(Prepared(b, {.checkMemory = true}).run().message(),
                       "reads element 0 of buffer 0 (h.0.ln), which nothing has written");
}

TEST(CheckMemory, FillsADeadBuffer) {
  // x dies with the call of micro-batch 0; the call of micro-batch 1 reads it all the same.
  PlanBuilder b(1, 2);
  const uint32_t compute = b.queue("compute");
  const auto x = b.tensor("x", DType::F32, {4}, proto::Buffer::SLOT, 1), sum = b.variable("sum", DType::F32, {}, 0);
  const uint32_t first = b.routine("first"), second = b.routine("second");
  b.fill(first, compute, x);
  b.kernel(first, compute, "sum", "rw", {x, sum});
  b.kernel(second, compute, "sum", "rw", {x, sum});
  const uint32_t step = b.program("step");
  b.call(step, first, 0);
  b.call(step, second, 1);
  b.life(x, step, first, 0, first, 1);
  EXPECT_TRUE(Prepared(b).run().ok());
  EXPECT_THAT_CONTAINS(Prepared(b, {.checkMemory = true}).run().message(),
                       "in micro-batch 1 it reads element 0 of buffer 0 (x)");
}

TEST(CheckMemory, KeepsMetricsAndStepBuffers) {
  PlanBuilder b(1, 3);
  const uint32_t compute = b.queue("compute");
  const auto one = b.variable("one", DType::F32, {}, 1);
  const auto total = b.tensor("total", DType::F32, {}, proto::Buffer::STEP);
  const uint32_t begin = b.routine("begin"), forward = b.routine("forward");
  b.fill(begin, compute, total);
  b.kernel(forward, compute, "accumulate", "rm", {one, total});
  const uint32_t step = b.program("step");
  b.call(step, begin);
  for (uint32_t m = 0; m < 3; ++m)
    b.call(step, forward, m);
  b.metric(step, "loss", total);
  b.life(total, step, begin, 0, forward, 0);
  Prepared prepared(b, {.checkMemory = true});
  for (uint64_t s = 0; s < 3; ++s) {
    ASSERT_TRUE(prepared.run(s).ok()) << prepared.device.failure().message();
    EXPECT_EQ(prepared.metric("loss"), 3);
  }
}

TEST(CheckNumerics, NamesOpValueAndIndex) {
  PlanBuilder b;
  const uint32_t compute = b.queue("compute");
  const auto p = b.variable("p", DType::F32, {1, 4}, 0);
  b.implements(b.kernel(b.routine("forward"), compute, "nan", "m", {p}), "h.1.attn");
  b.call(b.program("step"), 0);
  EXPECT_TRUE(Prepared(b).run().ok());
  EXPECT_STREQ(Prepared(b, {.checkNumerics = true}).run().message(),
               "rank 0, h.1.attn: --check-numerics: in micro-batch 0 it wrote NaN at [0, 1] of p");
}

TEST(NullDevice, WalksAPlanWithoutMemory) {
  PlanBuilder b = prefetchPlan(16, false);
  b.role().mutable_arenas(0)->set_bytes(uint64_t(1) << 42);
  plan::validatePlan(b.plan);
  runtime::NullDevice device;
  Executor executor(b.plan, device, testKernels(), {});
  EXPECT_TRUE(executor.execute({}).ok());
  EXPECT_EQ(device.walkedTasks(), 1u + 16 + 2 * 16);
  EXPECT_FALSE(executor.metric(0, "loss"));
}

} // namespace
} // namespace ds::test
