//===- PipelineTest.cpp - a hand-built pipeline in one process ------------===//
#include "runtime/session/Training.h"

#include "kernels/KernelRegistry.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PipelinePlan.h"
#include "test/unit/runtime/PlanRun.h"
#include "test/unit/runtime/ShardedPlan.h"

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace ds::test {
namespace {

class PipelineTest : public PlanRun {};

TEST_F(PipelineTest, GivesTheBitsOfOneRank) {
  for (const uint32_t microbatches : {1u, 2u, 6u}) {
    const auto one = run(wholePlan(microbatches)), two = run(pipelinePlan(microbatches));
    EXPECT_EQ(two.second, one.second) << microbatches;
    EXPECT_EQ(two.first, one.first) << microbatches;
    EXPECT_NE(one.first[0], one.first[3]) << "it does not train";
    EXPECT_TRUE(std::isfinite(one.first[3]));
  }
  for (const uint32_t ranks : {2u, 3u}) { // beside data parallelism: 12 micro-batches a step
    const auto one = run(wholePlan(12)), several = run(pipelinePlan(12 / ranks, ranks));
    EXPECT_EQ(several, one) << ranks;
    EXPECT_EQ(run(pipelinePlan(12 / ranks, ranks)), several);
  }
}

TEST_F(PipelineTest, GivesTheSameNormAndBitsUnderChecks) {
  const auto one = run(wholePlan(4));
  const std::string norm = nlohmann::json::parse(readLines(options.metrics)[2])["grad_norm"].dump();
  options.checkMemory = options.checkNumerics = true;
  EXPECT_EQ(run(pipelinePlan(4)), one);
  EXPECT_EQ(nlohmann::json::parse(readLines(options.metrics)[2])["grad_norm"].dump(), norm);
}

TEST_F(PipelineTest, CountsWhatGoesBetweenStages) {
  run(pipelinePlan(5, 2));
  const auto ranks = summary();
  ASSERT_EQ(ranks.size(), 4u);
  const uint64_t message = 3 * 4, loss = 4; // bytes
  for (const uint32_t rank : {0, 1, 2, 3}) {
    const auto &wire = ranks[rank]["wire_bytes_per_step"];
    EXPECT_EQ(wire["send"], 5 * message + (rank < 2 ? 0 : loss));
    EXPECT_EQ(wire["recv"], 5 * message + (rank < 2 ? loss : 0));
    EXPECT_EQ(wire["all_gather"], 8u) << "a part of the norm, along the pipe";
  }
}

TEST_F(PipelineTest, AppearsInTheTrace) {
  options.trace = folder / "t.json";
  run(pipelinePlan(3));
  std::map<std::pair<int, std::string>, int> counts;
  const auto trace = nlohmann::json::parse(readFile(options.trace));
  for (const auto &event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "message")
      ++counts[{event["pid"], event["name"]}];
  EXPECT_EQ((counts[{0, "send"}]), 4 * 3);
  EXPECT_EQ((counts[{0, "receive"}]), 4 * (3 + 1));
  EXPECT_EQ((counts[{1, "send"}]), 4 * (3 + 1));
  EXPECT_EQ((counts[{1, "receive"}]), 4 * 3);
}

TEST_F(PipelineTest, AStageThatFailsStopsAllWithItsText) {
  writeBadShardedData(folder / "d");
  EXPECT_ERROR(run(failingPipelinePlan(4)), "the data's sample 1 has value 11 at element 0 of input x");
}

TEST_F(PipelineTest, RunsOnTheNullDevice) {
  options.device = "null";
  options.exportPath.clear();
  EXPECT_TRUE(run(pipelinePlan(4)).first.empty());
  EXPECT_EQ(summary().size(), 2u);
}

/// A variable that both stages hold is exported once, and every parameter from the stage that has it.
TEST_F(PipelineTest, LoadsAndExportsWhatEachStageHolds) {
  options.steps = 0;
  const auto one = run(wholePlan(2)), two = run(pipelinePlan(2));
  EXPECT_EQ(one.second, two.second);
  options.weights = folder / "w2";
  writeFile(options.weights, two.second);
  options.seed = 99; // other random values, were they used
  EXPECT_EQ(run(pipelinePlan(2)).second, two.second);
}

} // namespace
} // namespace ds::test
