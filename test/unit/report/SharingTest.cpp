//===- SharingTest.cpp - buckets and wire bytes of a plan for four ranks --===//
#include "compiler/report/Sharing.h"
#include "compiler/report/WireBytes.h"

#include "compiler/report/Report.h"
#include "test/unit/report/SmallPlan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ds::report {
namespace {

using namespace plan::proto;

/// The small plan on four ranks: its parameter (256 elements) in a bucket of 4096, of which a rank holds a slice, and
/// its accumulator in one held whole; both of three collectives in a step of `calls` calls of the routine "sums".
Plan sharedPlan(int calls) {
  Plan plan = smallPlan();
  Axis &axis = *plan.mutable_world()->add_axes();
  axis.set_name("data");
  axis.set_size(4);
  plan.mutable_communicators()->Add()->set_name("data_ranks");
  plan.mutable_communicators(0)->add_axes(0);
  Bucket &bucket = *plan.add_buckets();
  bucket.set_name("zero.0");
  bucket.set_dtype(DTYPE_F32);
  bucket.set_elements(4096);
  bucket.add_members()->set_variable(0);
  bucket.mutable_placement()->mutable_window()->set_stride(1024);
  bucket.mutable_placement()->mutable_window()->set_count(1024);
  Role &role = *plan.mutable_roles(0);
  role.set_ranks(1, 3);
  Buffer &held = *role.add_buffers();
  held.set_name("zero.0");
  held.set_bytes(4096);
  held.set_bucket(0);
  held.set_scope(Buffer::PLAN);
  held.set_category(Buffer::WEIGHTS);
  Routine &routine = *role.add_routines();
  for (auto [kind, elements] : {std::pair(CollectiveCommand::ALL_GATHER, 1024),
                                {CollectiveCommand::REDUCE_SCATTER, 4096},
                                {CollectiveCommand::ALL_REDUCE, 1}}) {
    CollectiveCommand &collective = *routine.add_commands()->mutable_collective();
    collective.set_kind(kind);
    Operand &source = *collective.add_parts()->mutable_source();
    source.set_dtype(DTYPE_F32);
    source.add_shape(elements);
  }
  for (Program &program : *role.mutable_programs())
    for (int i = 0; i < calls && program.name() == "step"; ++i)
      program.add_calls()->set_routine(uint32_t(role.routines_size() - 1));
  return plan;
}

TEST(WireBytes, AreCountedCallByCall) {
  const Plan plan = sharedPlan(2);
  const WireBytes middle = wireBytesPerStep(plan, plan.roles(0), 1), last = wireBytesPerStep(plan, plan.roles(0), 3);
  EXPECT_EQ(middle.allGather, 2u * 3 * 4096); // its slice to three others
  EXPECT_EQ(middle.reduceScatter, 2u * 3 * 4096);
  EXPECT_EQ(middle.allReduce, 2u * 4);   // one element, to its owner
  EXPECT_EQ(last.allReduce, 2u * 3 * 4); // who hands the sum to the others
  EXPECT_EQ(wireBytesPerStep(sharedPlan(0), plan.roles(0), 0).broadcast, 0u);
}

TEST(Sharing, PaddingIsANumberOfItsOwn) {
  const Plan plan = sharedPlan(1);
  const std::vector<BucketFacts> facts = bucketFacts(plan, plan.roles(0));
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].wholeBytes, 16384u);
  EXPECT_EQ(facts[0].heldBytes, 4096u);
  EXPECT_EQ(facts[0].paddingBytes, 4096u - 256u); // 256 of 4096 elements, a quarter of both
  EXPECT_FALSE(facts[0].oversized);
}

TEST(Sharing, AParameterLargerThanABucketIsPointedOut) {
  Plan plan = sharedPlan(1);
  plan.set_bucket_elements(255);
  EXPECT_TRUE(bucketFacts(plan, plan.roles(0))[0].oversized);
  plan.set_bucket_elements(256);
  EXPECT_FALSE(bucketFacts(plan, plan.roles(0))[0].oversized);
}

} // namespace
} // namespace ds::report
