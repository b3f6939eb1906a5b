//===- SavingTest.cpp - checkpoints beside training are those without -----===//
#include "core/Sha256.h"
#include "kernels/KernelRegistry.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/StateShares.h"
#include "runtime/checkpoint/StoredState.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/session/Training.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanRun.h"
#include "test/unit/runtime/ShardedPlan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ds::test {
namespace {

using runtime::Manifest;

class Saving : public PlanRun {
protected:
  Saving() { options.metrics.clear(); }

  void runFor(uint64_t steps, const std::string &saved, uint64_t interval, uint64_t bufferBytes) {
    options.steps = steps;
    options.saving = {.folder = saved, .interval = interval, .keep = 0};
    builder.plan.mutable_training()->set_checkpoint_buffer_bytes(bufferBytes);
    run(builder);
  }
  std::string textOf(const std::string &saved, uint64_t step, uint32_t rank) const {
    return readFile(saved + "/" + runtime::checkpointName(step) + "/" + runtime::rankFileName(rank));
  }

  PlanBuilder builder = shardedPlan(2, 1);
};

/// A buffer of 3 bytes makes the copy last as long as the disk, so the next step would overwrite what is not copied
/// yet.
TEST_F(Saving, StepsDoNotWaitAndOverwriteNothing) {
  runFor(4, folder / "beside", 1, 3);
  for (const uint64_t step : {1, 2, 3, 4}) {
    runFor(step, folder / "after", 0, 1 << 20);
    for (const uint32_t rank : {0, 1})
      EXPECT_EQ(textOf(folder / "beside", step, rank), textOf(folder / "after", step, rank)) << step << " " << rank;
  }
}

TEST_F(Saving, ManyBuffersAndIntervalsEndAlike) {
  const std::string plain = run(builder).second;
  for (const uint64_t bytes : {0, 1, 64, 4096}) // 0: steps wait
    for (const uint64_t interval : {1, 2, 3}) {
      std::filesystem::remove_all(folder / "s");
      runFor(4, folder / "s", interval, bytes);
      EXPECT_EQ(readFile(options.exportPath), plain);
      EXPECT_EQ(runtime::checkpointsIn(folder / "s").back(), 4u);
    }
}

class Stored : public Saving {
protected:
  Stored() {
    runFor(2, folder / "s", 0, 4096);
    checkpoint = folder / "s/global_step2";
  }
  Manifest manifest() const { return runtime::readManifest(checkpoint + "/manifest.json"); }
  runtime::StoredState open(const PlanBuilder &plan, std::vector<uint32_t> ranks) const {
    return {checkpoint, manifest(), plan.plan, ranks};
  }

  std::string checkpoint;
};

TEST_F(Stored, ReadsInPiecesOfAMebibyte) {
  PlanBuilder large;
  large.variable("w", DType::F32, {1 << 20}, 0);
  const runtime::ReadOnlyFile zero = [&] {
    writeFile(folder / "zero", std::string(size_t(4) << 20, '\0'));
    return runtime::ReadOnlyFile(folder / "zero");
  }();
  runtime::StoredVariables stored;
  stored.pieces[{0, 0}] = {{&zero, 0, 0, 300'000, "F32"}, {&zero, 1'200'000, 300'000, 1 << 20, "F32"}};
  const runtime::VariableSources sources(large.plan, {.planFolder = "", .weightsPath = "", .stored = &stored});
  uint64_t bytes = 0, largest = 0;
  sources.read(0, 5, (1 << 20) - 5, [&](std::span<const std::byte> piece) {
    bytes += piece.size();
    largest = std::max<uint64_t>(largest, piece.size());
  });
  EXPECT_EQ(bytes, ((uint64_t(1) << 20) - 5) * 4);
  EXPECT_LE(largest, uint64_t(1) << 20);
}

TEST_F(Stored, MissingAndDamagedFilesAreNamed) {
  const std::string path = checkpoint + "/rank-00001.safetensors", bytes = readFile(path);
  const std::string expected = manifest().files[1].sha256;
  std::string damaged = bytes;
  damaged.back() = char(damaged.back() ^ 1);
  writeFile(path, damaged);
  const std::string found = hexOf(sha256(std::as_bytes(std::span(damaged))));
  EXPECT_ERROR(open(builder, {1}), path + " is damaged: its SHA-256 is " + found + ", its manifest says " + expected);
  writeFile(path, bytes.substr(1));
  EXPECT_ERROR(open(builder, {1}), path + " is damaged: it has " + std::to_string(bytes.size() - 1) + " bytes");
  std::filesystem::remove(path);
  EXPECT_ERROR(open(builder, {1}),
               "checkpoint " + checkpoint + " lacks its file rank-00001.safetensors of SHA-256 " + expected);
}

TEST_F(Stored, AnotherModelIsRefused) {
  PlanBuilder other = shardedPlan(2, 1);
  other.plan.mutable_variables(0)->set_name("another");
  EXPECT_ERROR(open(other, {0}), "is of another model or optimizer than the plan: it has no another");
  Manifest less = manifest(), wider = manifest();
  less.variables.push_back(less.variables[0]);
  less.variables.back().name = "more";
  EXPECT_ERROR(runtime::StoredState(checkpoint, less, builder.plan, {}), "it has more, which the plan has not");
  less.variables.back().kind = Manifest::Kind::Optimizer; // as of a layer that is frozen now
  EXPECT_ERROR(
      runtime::StoredState(checkpoint, less, builder.plan, {}),
      "it has more, which the plan has not; to go on from its weights with new optimizer state, write them with "
      "ds-run export " +
          checkpoint + " -o weights.safetensors, and begin with --weights weights.safetensors");
  wider.variables[0].shape.push_back(2);
  EXPECT_ERROR(runtime::StoredState(checkpoint, wider, builder.plan, {}), "the plan wants");
}

} // namespace
} // namespace ds::test
