//===- ShardingTest.cpp - pieces of variables become placements -------------===//
#include "compiler/export/Export.h"

#include "dialects/Dist/Dist.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/world/Placement.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace ds::exporting {
namespace {

using Runs = std::vector<plan::Run>; // of elements of the whole

/// The variables of a plan for two data ranks by two tensor ranks.
plan::proto::Plan exported(const std::string &variables, const std::string &reference = "") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::func::FuncDialect, train::TrainDialect, dist::DistDialect, plan::PlanDialect>();
  const auto module = mlir::parseSourceString<mlir::ModuleOp>(
      R"(dist.mesh @mesh ["pipe", "data", "expert", "tensor"] [1, 2, 1, 2])" + variables +
          "module @reference { func.func @microbatch() { " + reference + " return } }",
      &context);
  plan::proto::Plan plan;
  if (!module)
    ADD_FAILURE() << "cannot be parsed";
  else
    EXPECT_TRUE(succeeded(exportPlan(*module, {}, plan)));
  return plan;
}

Runs held(const plan::proto::Plan &plan, int variable, uint32_t rank) {
  const plan::proto::Variable &one = plan.variables(variable);
  plan::checkPlacement(plan, one, one.name()); // throws
  return plan::runsOf(plan.world(), one.placement(), {one.shape().data(), size_t(one.shape_size())}, rank);
}

TEST(Sharding, PiecesOfRowsAreOfTheWhole) {
  const std::string piece = " : tensor<2x3xf32> whole [4, 3] ",
                    how = R"(dist.sharding = #dist.sharding<sharded "tensor" dim 0>})";
  const plan::proto::Plan plan =
      exported("train.variable parameter @w" + piece + "from #train.fill<0.0> {trainable, " + how +
               "train.variable gradient @g of @w" + piece + "{" + how + "train.variable optimizer @m of @w" + piece +
               "from #train.fill<0.0> {" + how);
  ASSERT_EQ(plan.variables_size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(std::vector<int64_t>(plan.variables(i).shape().begin(), plan.variables(i).shape().end()),
              (std::vector<int64_t>{4, 3}));
    for (const uint32_t rank : {0, 2})
      EXPECT_EQ(held(plan, i, rank), (Runs{{0, 6}}));
    for (const uint32_t rank : {1, 3})
      EXPECT_EQ(held(plan, i, rank), (Runs{{6, 6}}));
  }
}

TEST(Sharding, APackedWeightIsCutRunByRun) {
  const plan::proto::Plan plan = exported(R"(train.variable parameter @qkv : tensor<3x2xf32> whole [6, 2]
      from #train.fill<0.0> {dist.sharding = #dist.sharding<sharded "tensor" dim 0 runs 3>})");
  EXPECT_EQ(held(plan, 0, 0), (Runs{{0, 2}, {4, 2}, {8, 2}}));
  EXPECT_EQ(held(plan, 0, 1), (Runs{{2, 2}, {6, 2}, {10, 2}}));
}

/// The second axis cuts what the first has left.
TEST(Sharding, TwoAxesMayCutOneDimension) {
  const plan::proto::Plan plan = exported(R"(train.variable parameter @w : tensor<2xf32> whole [8]
      from #train.fill<0.0> {dist.sharding = #dist.sharding<sharded "data" dim 0, sharded "tensor" dim 0>})");
  for (const uint32_t rank : {0, 1, 2, 3})
    EXPECT_EQ(held(plan, 0, rank), (Runs{{2 * rank, 2}}));
}

/// Axes stand in the mesh's order: data before tensor.
TEST(Sharding, APieceOfARunningStatisticVaries) {
  const plan::proto::Plan plan = exported(
      R"(train.variable buffer @mean : tensor<2xf32> whole [4] from #train.fill<0.0>
          {dist.sharding = #dist.sharding<sharded "tensor" dim 0>})",
      R"(%0 = train.read @mean : tensor<4xf32>
          train.update_average %0 into @mean momentum 0.9 correction 1.0 : tensor<4xf32>)");
  EXPECT_EQ(held(plan, 0, 3), (Runs{{2, 2}}));
  EXPECT_EQ(plan::versionsOf(plan, plan.variables(0)), 2U);
  EXPECT_TRUE(plan.variables(0).placement().axes(0).varies());
}

} // namespace
} // namespace ds::exporting
