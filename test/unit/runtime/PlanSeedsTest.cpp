//===- PlanSeedsTest.cpp - what plan_run_fuzzer begins with ---------------===//
#include "runtime/plan/PlanReader.h"
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
TEST(PlanSeeds, ArePlansOfToday) {
  const std::pair<std::string, PlanBuilder> seeds[] = {{"sharded", shardedPlan(2, 1)},
                                                       {"sharded-accumulated", shardedPlan(2, 3)},
                                                       {"pipeline", pipelinePlan(1)},
                                                       {"pipeline-accumulated", pipelinePlan(3)},
                                                       {"pipeline-sharded", pipelinePlan(2, 2)},
                                                       {"sharded-tail", shardedTailPlan()}};
  for (const auto &[name, builder] : seeds) {
    plan::validatePlan(builder.plan);
    const std::string path = std::string(DS_PLAN_SEEDS) + "/" + name + ".message";
    if (std::getenv("DS_UPDATE_DOCS") != nullptr)
      writeFile(path, builder.plan.SerializeAsString());
    EXPECT_TRUE(readFile(path) == builder.plan.SerializeAsString())
        << path << " is another plan; DS_UPDATE_DOCS=1 PlanReaderTest --gtest_filter='PlanSeeds.*' writes it";
  }
}

} // namespace
} // namespace ds::test
