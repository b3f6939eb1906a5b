//===- ReplicaDigestsTest.cpp - a bit that flips in one replica is named --===//
#include "runtime/session/ReplicaDigests.h"

#include "core/DType.h"
#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/comm/inprocess/InProcessTransport.h"
#include "runtime/device/Arena.h"
#include "runtime/device/Device.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/session/LocalRanks.h"
#include "runtime/session/Training.h"
#include "test/unit/runtime/CutPlan.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/PlanRun.h"
#include "test/unit/runtime/ShardedPlan.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ds::test {
namespace {

/// A CPU device that flips a bit of its first arena before a step.
class FlippingDevice final : public runtime::Device {
public:
  FlippingDevice(uint64_t step, uint64_t byte) : step_(step), byte_(byte) {}

  std::string_view name() const noexcept override { return cpu_.name(); }
  bool executes() const noexcept override { return true; }
  std::unique_ptr<runtime::Arena> createArena(const std::string &space, uint64_t bytes, uint64_t alignment) override {
    std::unique_ptr<runtime::Arena> arena = cpu_.createArena(space, bytes, alignment);
    base_ = base_ != nullptr ? base_ : arena->base();
    return arena;
  }
  runtime::Event &createEvent() override { return cpu_.createEvent(); }
  std::unique_ptr<runtime::Queue> createQueue(const runtime::QueueOptions &options) override {
    return cpu_.createQueue(options);
  }
  uint64_t allocatedBytes(const std::string &space) const noexcept override { return cpu_.allocatedBytes(space); }
  void write(void *target, std::span<const std::byte> source) noexcept override { cpu_.write(target, source); }
  void read(std::span<std::byte> target, const void *source) noexcept override { cpu_.read(target, source); }
  Status beginRun(uint64_t step) noexcept override {
    if (step == step_)
      base_[byte_] ^= std::byte(1); // the last bit of a mantissa
    return cpu_.beginRun(step);
  }
  Status failure() const noexcept override { return cpu_.failure(); }
  void fail(const Status &status) noexcept override { cpu_.fail(status); }
  void onFailure(Agree agree) override { cpu_.onFailure(std::move(agree)); }

private:
  const uint64_t step_, byte_;
  std::byte *base_ = nullptr;
  runtime::CpuDevice cpu_;
};

/// SGD with momentum on parameter w, which every rank updates whole: data parallel without ZeRO.
PlanBuilder replicatedPlan(uint32_t ranks, int64_t elements) {
  PlanBuilder b(1, 1);
  b.ranks(ranks);
  const uint32_t compute = b.queue("compute"), comm = b.queue("comm", proto::Queue::COLLECTIVE);
  const uint32_t fed = b.event("fed"), reduced = b.event("reduced");
  const auto constant = proto::Variable::CONSTANT;
  const auto w = b.variable("w", DType::F32, {elements}, 1);
  const auto m = b.variable("m", DType::F32, {elements}, 0, proto::Variable::OPTIMIZER);
  const auto rate = b.variable("rate", DType::F64, {}, 0.03, constant),
             clip = b.variable("clip", DType::F64, {}, 1, constant),
             done = b.variable("step", DType::I64, {}, 1, constant);
  const auto x = b.tensor("x", DType::F32, {1, elements}, proto::Buffer::STEP);
  const auto g = b.tensor("g", DType::F32, {1, elements}, proto::Buffer::STEP);
  const uint32_t forward = b.routine("forward"), step = b.program("step");
  signal(b.feed(forward, compute, b.input("x", DType::F32, {1, elements}), x), fed);
  auto &sum = b.collective(forward, comm, proto::CollectiveCommand::ALL_REDUCE, x, g);
  wait(sum, fed);
  signal(sum, reduced);
  auto &sgd = b.kernel(forward, compute, "sgd", "mrmrrr", {w, {g.buffer, DType::F32, {elements}}, m, rate, done, clip});
  attribute(sgd, "momentum").set_number(0.9);
  attribute(sgd, "weight_decay").set_number(0.01);
  attribute(sgd, "nesterov").set_integer(0);
  wait(sgd, reduced);
  b.call(step, forward, 0);
  b.life(x, step, forward, 0, forward, 1);
  b.life(g, step, forward, 1, forward, 2);
  return b;
}

class ReplicaDigestsTest : public PlanRun {
protected:
  ReplicaDigestsTest() {
    options.steps = 100;
    options.replicaDigestInterval = 10;
  }

  /// Bit 0 of element 3 of a variable flips on `rank` before step `step` + 1.
  void flip(const PlanBuilder &builder, const std::string &name, uint32_t rank, uint64_t step) {
    uint64_t byte = 0;
    for (const proto::Buffer &buffer : builder.plan.roles(0).buffers())
      if (buffer.has_variable() && buffer.name() == name)
        byte = buffer.offset() + 3 * 4;
    options.makeDevice = [=](uint32_t which) -> std::unique_ptr<runtime::Device> {
      if (which == rank)
        return std::make_unique<FlippingDevice>(step, byte);
      return std::make_unique<runtime::CpuDevice>();
    };
  }
};

TEST_F(ReplicaDigestsTest, AFlippedBitIsNamedWithinTheInterval) {
  const PlanBuilder builder = replicatedPlan(4, 5);
  for (const char *name : {"w", "m"})
    for (const uint32_t rank : {0, 2, 3}) {
      flip(builder, name, rank, 33);
      const std::string others = rank == 0 ? "1, 2, 3" : rank == 2 ? "0, 1, 3" : "0, 1, 2";
      // A flipped momentum has reached the weights by then, which stand first in the plan.
      const std::string part = "after step 40 variable w is not the same on every rank: rank ";
      EXPECT_ERROR(run(builder), part + std::to_string(rank) + " differs from " + others);
      EXPECT_FALSE(std::filesystem::exists(options.exportPath));
    }
  flip(builder, "w", 1, 95); // the last steps are no full interval
  options.steps = 97;
  EXPECT_ERROR(run(builder), "after step 97 variable w is not the same on every rank: rank 1 differs from 0, 2, 3");
}

TEST_F(ReplicaDigestsTest, ComparesWhenAskedTo) {
  const PlanBuilder builder = replicatedPlan(2, 5);
  flip(builder, "w", 1, 33);
  options.replicaDigestInterval = 0;
  run(builder);
  EXPECT_TRUE(std::filesystem::exists(options.exportPath));
  options.replicaDigestInterval = 7;
  EXPECT_ERROR(run(builder), "after step 35 variable w is not the same on every rank: rank 1 differs from 0");
}

/// Of ranks 0 to 3, two along axis data by two along axis tensor, 0 and 2 have a piece alike, and so have 1 and 3.
TEST_F(ReplicaDigestsTest, ComparesPiecesWithTheirReplicasAlone) {
  writeCutData(folder / "x");
  options.data = {folder / "x"};
  options.replicaDigestInterval = 1;
  for (const Cut &cut : {Cut{2, 0, 1}, Cut{2, 1, 3}}) {
    PlanBuilder builder = cutPlan(cut);
    takeFromFile(builder, folder.path()); // numbers that an update does not round to others
    flip(builder, "w", 3, 0);
    EXPECT_ERROR(run(builder), "after step 1 variable w is not the same on every rank: rank 3 differs from 1");
    options.makeDevice = {};
    run(builder);
  }
}

/// Equal replicas, whatever is sharded beside them.
TEST_F(ReplicaDigestsTest, FindsNothingWhereNothingDiffers) {
  options.replicaDigestInterval = 1;
  for (const uint32_t ranks : {2, 3, 4})
    run(shardedPlan(ranks, 2));
  run(replicatedPlan(3, 5));
}

/// Of 64 MiB of weights and momentum a rank; every 100 steps that is less than 1 % of steps that only read and write
/// them once.
TEST_F(ReplicaDigestsTest, TakesLittleTime) {
  const int64_t elements = int64_t(1) << 23;
  const PlanBuilder builder = replicatedPlan(2, elements);
  runtime::InProcessTransport transport(2);
  runtime::LocalRanks ranks(builder.plan, transport, [](uint32_t) { return std::make_unique<runtime::CpuDevice>(); },
                            kernels::cpuKernels(), {});
  ranks.initialize(runtime::VariableSources(builder.plan, {}));
  runtime::ReplicaDigests replicas(builder.plan, ranks, transport);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i)
    replicas.compare(0);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 5;
  const double bytes = 2.0 * 2 * double(elements) * 4;
  std::printf("%.1f MiB in %.4f s: %.2f GiB/s\n", bytes / 1048576, seconds, bytes / seconds / double(1 << 30));
  EXPECT_GT(bytes / seconds, 1e8); // a debugger's speed
}

} // namespace
} // namespace ds::test
