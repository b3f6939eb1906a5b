//===- PlanSeedsTest.cpp - what the fuzzers of plans begin with ----------===//
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/unit/runtime/BadPlan.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PipelinePlan.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/ShardedPlan.h"
#include "test/unit/runtime/TailPlan.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <utility>

namespace ds::test {
namespace {

/// A seed that the reader refuses, or that is no message any more, would let the fuzzer run nothing.
void expectSeed(const std::string &path, const std::string &bytes) {
  if (std::getenv("DS_UPDATE_DOCS") != nullptr)
    writeFile(path, bytes);
  EXPECT_TRUE(readFile(path) == bytes)
      << path << " is another plan; DS_UPDATE_DOCS=1 PlanReaderTest --gtest_filter='PlanSeeds.*' writes it";
}

TEST(PlanSeeds, ArePlansOfToday) {
  const std::pair<std::string, proto::Plan> seeds[] = {{"plan-run/corpus/sharded", shardedPlan(2, 1).plan},
                                                       {"plan-run/corpus/sharded-accumulated", shardedPlan(2, 3).plan},
                                                       {"plan-run/corpus/pipeline", pipelinePlan(1).plan},
                                                       {"plan-run/corpus/pipeline-accumulated", pipelinePlan(3).plan},
                                                       {"plan-run/corpus/pipeline-sharded", pipelinePlan(2, 2).plan},
                                                       {"plan-run/corpus/sharded-tail", shardedTailPlan().plan},
                                                       {"plan-reader/corpus/nothing", PlanBuilder().plan},
                                                       {"plan-reader/corpus/prefetch", soundPlan()},
                                                       {"plan-reader/corpus/placements", placedPlan()},
                                                       {"plan-reader/corpus/two-stages", pipelinePlan(3, 2).plan}};
  for (const auto &[name, plan] : seeds) {
    plan::validatePlan(plan);
    expectSeed(std::string(DS_PLAN_SEEDS) + "/" + name + ".message", plan.SerializeAsString());
  }
  expectSeed(std::string(DS_PLAN_SEEDS) + "/plan-reader/corpus/prefetch.dsplan", plan::framePlan(soundPlan()));
}

TEST(PlanSeeds, ThatWereCompiledAreSound) {
  for (const std::string name : {"gpt2-one-rank", "gpt2-zero3"}) {
    const std::string path = std::string(DS_PLAN_SEEDS) + "/plan-reader/corpus/" + name + ".message";
    proto::Plan plan;
    ASSERT_TRUE(plan.ParseFromString(readFile(path))) << path;
    EXPECT_EQ(plan.format_version(), plan::formatVersion) << path << " is old; scripts/plan_seeds.py compiles it anew";
    EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error") << path;
  }
}

} // namespace
} // namespace ds::test
