//===- FactsTest.cpp - counts and their spelling --------------------------===//
#include "compiler/report/Facts.h"
#include "runtime/plan/run/Flops.h"
#include "test/unit/report/SmallPlan.h"

#include <gtest/gtest.h>

#include <vector>

namespace ds::report {
namespace {

TEST(Facts, ProductsOfAStep) {
  plan::proto::Plan plan = smallPlan();
  EXPECT_EQ(ds::plan::matmulFlopsPerStep(plan), 2u * (1024 + 1024)); // two micro-batches of two products
  plan.mutable_reference()->mutable_values(3)->set_shape(1, 0);      // a left side without elements
  EXPECT_EQ(ds::plan::matmulFlopsPerStep(plan), 2u * 1024);
}

TEST(Facts, LeadingDimensionsMultiply) {
  plan::proto::Plan plan = smallPlan();
  auto &reference = *plan.mutable_reference();
  const auto set = [&](int value, std::initializer_list<int64_t> shape) {
    reference.mutable_values(value)->mutable_shape()->Assign(shape.begin(), shape.end());
  };
  set(2, {3, 5, 8, 16}); // left of the first product
  set(1, {3, 5, 8, 4});  // its result
  EXPECT_EQ(ds::plan::matmulFlopsPerStep(plan), 2u * (15 * 1024 + 1024));
}

/// Attention of 4 heads, 2 groups, 3 queries and 5 keys, in both layouts.
TEST(Facts, AttentionCountsAsItsProducts) {
  using Shapes = std::vector<std::vector<int64_t>>; // q, k, v, out, lse
  for (const Shapes &shapes : {Shapes{{2, 4, 3, 8}, {2, 2, 5, 8}, {2, 2, 5, 6}, {2, 4, 3, 6}, {2, 4, 3}},
                               Shapes{{2, 3, 4, 8}, {2, 5, 2, 8}, {2, 5, 2, 6}, {2, 3, 4, 6}, {2, 4, 3}}}) {
    plan::proto::Plan plan = smallPlan();
    auto &reference = *plan.mutable_reference();
    reference.clear_ops();
    reference.clear_values();
    for (const std::vector<int64_t> &shape : shapes)
      reference.add_values()->mutable_shape()->Assign(shape.begin(), shape.end());
    const auto add = [&](const char *name, std::initializer_list<uint32_t> operands,
                         std::initializer_list<uint32_t> results) {
      auto &op = *reference.add_ops();
      op.set_op(name);
      op.set_function("microbatch");
      op.mutable_operands()->Assign(operands.begin(), operands.end());
      op.mutable_results()->Assign(results.begin(), results.end());
    };
    const uint64_t forward = 2u * (2 * 4 * 3 * 5) * (8 + 6), microbatches = 2;
    add("train.attention", {0, 1, 2}, {3, 4});
    EXPECT_EQ(ds::plan::matmulFlopsPerStep(plan), microbatches * forward);
    add("train.attention_grad", {3, 0, 1, 2, 3, 4}, {0, 1, 2});
    EXPECT_EQ(ds::plan::matmulFlopsPerStep(plan), microbatches * 3 * forward);
  }
}

TEST(Facts, RunningStatisticsAreOfOneRank) {
  plan::proto::Plan plan = smallPlan();
  EXPECT_TRUE(ownOfDataRanks(plan).empty());
  plan.mutable_world()->clear_axes();
  auto &axis = *plan.mutable_world()->add_axes();
  axis.set_name("data");
  axis.set_size(2);
  plan.mutable_variables(0)->mutable_placement()->add_axes()->set_varies(true);
  EXPECT_EQ(ownOfDataRanks(plan), std::vector{plan.variables(0).name()});
}

TEST(Facts, Ranks) {
  plan::proto::Plan plan = smallPlan();
  EXPECT_EQ(worldSize(plan).ranks(), 1u);
  plan::proto::Axis &axis = *plan.mutable_world()->add_axes();
  axis.set_name("data");
  axis.set_size(6);
  EXPECT_EQ(worldSize(plan).ranks(), 6u);
  EXPECT_EQ(roleOf(plan, 0), 0);
  EXPECT_EQ(roleOf(plan, 1), -1);
}

TEST(Facts, Spelling) {
  EXPECT_EQ(bytesText(0), "0 B");
  EXPECT_EQ(bytesText(1023), "1023 B");
  EXPECT_EQ(bytesText(1536), "1.50 KiB");
  EXPECT_EQ(bytesText(uint64_t(12) << 30), "12.0 GiB");
  EXPECT_EQ(bytesText(uint64_t(100) << 20), "100 MiB");
  EXPECT_EQ(countText(124439808), "124 M");
  EXPECT_EQ(countText(7), "7");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
}

} // namespace
} // namespace ds::report
