//===- RanksTest.cpp - hand-built plans of several ranks in one process ---===//
#include "runtime/session/Training.h"

#include "core/DType.h"
#include "kernels/KernelRegistry.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PipelinePlan.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/PlanRun.h"
#include "test/unit/runtime/ShardedPlan.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using runtime::Training;

class RanksTest : public PlanRun {};

TEST_F(RanksTest, GiveTheBitsOfOneRank) {
  for (const auto &[ranks, accumulation] :
       {std::pair{2u, 6u}, std::pair{3u, 4u}, std::pair{4u, 3u}, std::pair{6u, 2u}}) {
    const auto one = run(shardedPlan(1, 12)), several = run(shardedPlan(ranks, accumulation));
    EXPECT_EQ(several.second, one.second) << ranks;
    EXPECT_EQ(several.first, one.first) << ranks;
    EXPECT_EQ(run(shardedPlan(ranks, accumulation)), several);
  }
}

TEST_F(RanksTest, GiveTheSameBitsUnderChecks) {
  const auto plain = run(shardedPlan(3, 2));
  options.checkMemory = options.checkNumerics = true;
  EXPECT_EQ(run(shardedPlan(3, 2)), plain);
}

TEST_F(RanksTest, SumUpWhatTheyUsed) {
  PlanBuilder builder = shardedPlan(4, 3);
  run(builder);
  const auto ranks = summary();
  ASSERT_EQ(ranks.size(), 4u);
  const uint64_t elements = builder.plan.buckets(0).elements(); // 3 of 4 slices go over the wire
  for (uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(ranks[rank]["rank"], rank);
    EXPECT_EQ(ranks[rank]["device_bytes"], builder.plan.roles(0).arenas(0).bytes());
    const auto &wire = ranks[rank]["wire_bytes_per_step"];
    EXPECT_EQ(wire["reduce_scatter"], 3 * elements * 4 * 3 / 4); // three micro-batches
    EXPECT_EQ(wire["all_gather"], elements * 4 * 3 / 4);
    // One element a micro-batch: its owner hands the sum to three others, each of which has handed its own to it.
    EXPECT_EQ(wire["all_reduce"], 3 * (rank == 3 ? 4 * 3 : 4));
  }
}

TEST_F(RanksTest, AppearInTheTrace) {
  options.trace = folder / "t.json";
  run(shardedPlan(3, 2));
  std::map<std::pair<int, std::string>, int> counts;
  const auto trace = nlohmann::json::parse(readFile(options.trace));
  for (const auto &event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "collective") {
      ++counts[{event["pid"], event["name"]}];
      EXPECT_EQ(event["tid"], 1);
      if (event["name"] == "reduce_scatter") {
        EXPECT_EQ(event["args"]["op"], "gradient of a and c");
      }
    }
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ((counts[{rank, "reduce_scatter"}]), 4 * 2);
    EXPECT_EQ((counts[{rank, "all_gather"}]), 4);
    EXPECT_EQ((counts[{rank, "all_reduce"}]), 4 * 2);
  }
}

/// Every rank draws the elements of its slice: the whole has the bits of one rank.
TEST_F(RanksTest, LoadElementByElement) {
  options.steps = 0;
  const auto one = run(shardedPlan(1, 1));
  for (const uint32_t ranks : {2, 3, 5})
    EXPECT_EQ(run(shardedPlan(ranks, 1)).second, one.second) << ranks;
}

TEST_F(RanksTest, OneThatFailsStopsAllWithItsText) {
  writeBadShardedData(folder / "d");
  EXPECT_ERROR(run(failingShardedPlan(4, 2)), "the data's sample 1 has value 11 at element 0 of input x");
  EXPECT_EQ(readLines(options.metrics).size(), 0u);
}

TEST_F(RanksTest, RefuseAnotherNumber) {
  write(shardedPlan(3, 2));
  options.ranks = 2;
  EXPECT_ERROR(Training(options, kernels::cpuKernels()), "-n 2 does not fit plan");
  options.ranks.reset();
  options.launch = {.launcher = "mpirun", .processes = 2};
  EXPECT_ERROR(Training(options, kernels::cpuKernels()),
               "mpirun started 2 processes, each to be one rank, but plan " + options.planPath + " is for 3 ranks");
}

TEST_F(RanksTest, RefuseAnExportWithAGap) {
  PlanBuilder builder = shardedPlan(2, 1);
  builder.plan.mutable_buckets(0)->mutable_members()->RemoveLast();
  EXPECT_ERROR(run(builder), "variable c cannot be exported: no buffer of the plan holds it");
}

/// Buckets of 16 elements over 2 ranks: a (5 elements at 0), c (6 at 5), d (5 at 11).
TEST(HeldParts, CoverVariablesAcrossRanks) {
  PlanBuilder b;
  b.ranks(2);
  for (const auto &[name, count] : {std::pair{"a", 5}, std::pair{"c", 6}, std::pair{"d", 5}})
    b.bareVariable(name, DType::F32, {count}, 0);
  b.bucketTensor(b.bucket("bucket", {0, 1, 2}, 1), true);
  const std::vector<uint32_t> ranks = {0, 1};
  const runtime::Coverings coverings(b.plan, ranks);
  const std::vector<runtime::RankPart> ofC = coverings.of(1);
  ASSERT_EQ(ofC.size(), 2u);
  EXPECT_EQ(ofC[0].rank, 0u);
  EXPECT_EQ(ofC[0].part.count, 3u);
  EXPECT_EQ(ofC[0].part.byteOffset, 20u);
  EXPECT_EQ(ofC[1].rank, 1u);
  EXPECT_EQ(ofC[1].part.first, 3u);
  EXPECT_EQ(ofC[1].part.count, 3u);
  EXPECT_EQ(ofC[1].part.byteOffset, 0u);
  for (const auto &[variable, elements] : {std::pair{0, 5}, std::pair{1, 6}, std::pair{2, 5}})
    EXPECT_EQ(runtime::coveredElements(coverings.of(uint32_t(variable))), uint64_t(elements));
  EXPECT_EQ(runtime::coveredElements(runtime::Coverings(b.plan, std::span(&ranks[1], 1)).of(1)), 0u);
}

/// A tied weight lies on the ranks of two stages; the first stage's copy is taken.
TEST(HeldParts, OfSeveralRolesAreTakenFromTheFirst) {
  const PlanBuilder b = pipelinePlan(1, 2);
  const std::vector<uint32_t> ranks = {0, 1, 2, 3};
  const runtime::Coverings coverings(b.plan, ranks);
  const auto holder = [&](const char *name) {
    for (int i = 0; i < b.plan.variables_size(); ++i)
      if (b.plan.variables(i).name() == name)
        return coverings.of(uint32_t(i)).at(0).rank;
    return UINT32_MAX;
  };
  EXPECT_EQ(holder("a"), 0u);
  EXPECT_EQ(holder("c"), 2u);
  EXPECT_EQ(holder("step"), 0u);
}

} // namespace
} // namespace ds::test
