//===- NonFiniteTest.cpp - losses, norms and weights that are not finite --===//
#include "runtime/session/NonFinite.h"
#include "runtime/session/Training.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/PlanRun.h"
#include "test/unit/runtime/ShardedPlan.h"

#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ds::test {
namespace {

using runtime::NonFiniteError;
using runtime::OnNonFinite;

/// ShardedPlan, two samples a step: two ranks of one process. The sample of step 3 may hold a number that is not
/// finite.
class NonFiniteTest : public PlanRun {
protected:
  NonFiniteTest() { options.steps = 6; }

  void writeData(float third) {
    std::vector<float> data;
    for (int i = 0; i < 12 * 5; ++i)
      data.push_back(float(i % 17) / 3 - 1.7F * float(i % 5));
    data[4 * 5 + 1] = third;
    writeFile(folder / "d",
              safetensors(R"({"x":{"dtype":"F32","shape":[12,5],"data_offsets":[0,240]}})", bytesOf(data)));
  }
  std::vector<nlohmann::json> lines() {
    std::vector<nlohmann::json> lines;
    for (const std::string &line : readLines(options.metrics))
      lines.push_back(nlohmann::json::parse(line)); // throws on a bare NaN
    return lines;
  }
};

TEST_F(NonFiniteTest, StopsAtTheStepAndExportsNothing) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    writeData(value);
    try {
      run(shardedPlan(2, 1));
      FAIL() << "it went on";
    } catch (const NonFiniteError &error) {
      EXPECT_THAT_CONTAINS(error.what(), std::isnan(value) ? "in step 3 the loss is NaN on rank 0"
                                                           : "in step 3 the loss is Infinity on rank 0");
    }
    EXPECT_FALSE(std::filesystem::exists(options.exportPath));
    const auto all = lines();
    ASSERT_EQ(all.size(), 4u);
    EXPECT_TRUE(all[2]["loss"].is_null());
    EXPECT_EQ(all[2]["nonfinite"]["loss"], std::isnan(value) ? "NaN" : "Infinity");
    EXPECT_FALSE(all[1].contains("nonfinite"));
    EXPECT_TRUE(all[3].contains("summary"));
  }
}

/// The norm alone: the third metric of a plan whose loss is finite.
TEST_F(NonFiniteTest, StopsForAGradientNormToo) {
  writeData(std::numeric_limits<float>::quiet_NaN());
  PlanBuilder builder = shardedPlan(2, 1);
  builder.plan.mutable_roles(0)->mutable_programs(0)->mutable_metrics(0)->set_name("grad_norm");
  EXPECT_ERROR(run(builder), "in step 3 the gradient norm is NaN on rank 0");
  EXPECT_EQ(lines()[2]["nonfinite"]["grad_norm"], "NaN");
}

/// A skipped step leaves what a run without its sample would have had: weights, momentum and padding.
TEST_F(NonFiniteTest, SkipUndoesTheStep) {
  writeData(std::numeric_limits<float>::quiet_NaN());
  options.onNonFinite = OnNonFinite::Skip;
  const auto [losses, weights] = run(shardedPlan(2, 1));
  const auto all = lines();
  ASSERT_EQ(losses.size(), 6u);
  EXPECT_TRUE(std::isnan(losses[2]));
  for (const size_t step : {0, 1, 2, 3, 4, 5}) {
    EXPECT_EQ(all[step]["skipped"], step == 2) << step;
    EXPECT_EQ(std::isfinite(losses[step]), step != 2) << step;
  }
  // The same without the third pair of samples.
  std::string bytes = readFile(folder / "d");
  bytes = bytes.substr(8 + bytes.find('}', bytes.find('}') + 1) + 1 - 8);
  ASSERT_EQ(bytes.size(), 240u);
  bytes.erase(4 * 5 * 4, 2 * 5 * 4);
  writeFile(folder / "d", safetensors(R"({"x":{"dtype":"F32","shape":[10,5],"data_offsets":[0,200]}})", bytes));
  options.steps = 5;
  options.onNonFinite = OnNonFinite::Stop;
  const auto [without, sameWeights] = run(shardedPlan(2, 1));
  EXPECT_EQ(weights, sameWeights);
  EXPECT_EQ(losses[3], without[2]);
  EXPECT_EQ(losses[5], without[4]);
}

TEST_F(NonFiniteTest, ContinueGoesOnAndExportsWhatThereIs) {
  writeData(std::numeric_limits<float>::quiet_NaN());
  options.onNonFinite = OnNonFinite::Continue;
  const auto [losses, weights] = run(shardedPlan(2, 1));
  EXPECT_EQ(losses.size(), 6u);
  EXPECT_FALSE(weights.empty());
  EXPECT_EQ(lines().size(), 7u);
}

/// The last loss is finite and the update after it overflows.
TEST_F(NonFiniteTest, ExportsNothingThatTheLastUpdateBroke) {
  writeData(1e30F);
  options.steps = 3;
  PlanBuilder builder = shardedPlan(2, 1);
  for (proto::Variable &variable : *builder.plan.mutable_variables()) {
    if (variable.name() == "rate")
      variable.mutable_source()->set_fill(1e38);
    variable.set_trainable(variable.kind() == proto::Variable::PARAMETER);
  }
  options.weights.clear();
  try {
    run(builder);
    FAIL() << "it exported";
  } catch (const NonFiniteError &error) {
    EXPECT_THAT_CONTAINS(error.what(), "after the last step, so nothing was exported");
  }
  EXPECT_FALSE(std::filesystem::exists(options.exportPath));
  options.onNonFinite = OnNonFinite::Continue;
  EXPECT_FALSE(run(builder).second.empty());
}

} // namespace
} // namespace ds::test
