//===- FactsTest.cpp - counts and their spelling --------------------------===//
#include "compiler/report/Facts.h"
#include "runtime/plan/Flops.h"
#include "test/unit/report/SmallPlan.h"

#include <gtest/gtest.h>

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

TEST(Facts, AttentionCountsAsItsProducts) {
  plan::proto::Plan plan = smallPlan();
  auto &reference = *plan.mutable_reference();
  reference.clear_ops();
  reference.clear_values();
  for (std::initializer_list<int64_t> shape : {std::initializer_list<int64_t>{2, 4, 3, 8}, {2, 2, 5, 8}, {2, 2, 5, 6}})
    reference.add_values()->mutable_shape()->Assign(shape.begin(), shape.end());
  const auto add = [&](const char *name, std::initializer_list<uint32_t> operands) {
    auto &op = *reference.add_ops();
    op.set_op(name);
    op.set_function("microbatch");
    op.mutable_operands()->Assign(operands.begin(), operands.end());
  };
  const uint64_t forward = 2u * (2 * 4 * 3 * 5) * (8 + 6), microbatches = 2;
  add("train.attention", {0, 1, 2});
  EXPECT_EQ(ds::plan::matmulFlopsPerStep(plan), microbatches * forward);
  add("train.attention_grad", {0, 0, 1, 2});
  EXPECT_EQ(ds::plan::matmulFlopsPerStep(plan), microbatches * 3 * forward);
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
