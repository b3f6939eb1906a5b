//===- PlanReaderRanksTest.cpp - communicators, buckets, collectives ------===//
#include "core/DType.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/BadPlan.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>
#include <vector>

namespace ds::test {
namespace {

/// Two ranks, six elements of two variables in a bucket of eight:
///   step     0 reduce_scatter g -> shard, accumulated   1 all_gather whole's slices in place   2 all_reduce loss in
///   place
proto::Plan twoRankPlan() {
  PlanBuilder b;
  b.ranks(2);
  b.input("x", DType::F32, {1});
  const uint32_t compute = b.queue("compute");
  const uint32_t a = b.bareVariable("a", DType::F32, {3}, 1), c = b.bareVariable("c", DType::F32, {2}, 2);
  const uint32_t moment = b.bareVariable("m", DType::F32, {8}, 0, proto::Variable::OPTIMIZER);
  const auto whole = b.bucketTensor(b.bucket("parameters", {a, c}, 4), false);
  const auto shard = b.bucketTensor(b.bucket("moments", {moment}, 4), true);
  const auto g = b.tensor("g", DType::F32, {8}, proto::Buffer::CALL),
             loss = b.tensor("loss", DType::F32, {}, proto::Buffer::STEP);
  const uint32_t step = b.routine("step");
  auto *part = b.collective(step, compute, proto::CollectiveCommand::REDUCE_SCATTER, g, shard)
                   .mutable_collective()
                   ->mutable_parts(0);
  part->set_accumulate(true);
  part->mutable_target()->set_access(proto::Operand::READ_WRITE);
  auto *slice = b.collective(step, compute, proto::CollectiveCommand::ALL_GATHER, whole, whole)
                    .mutable_collective()
                    ->mutable_parts(0)
                    ->mutable_source();
  slice->set_shape(0, 4);
  slice->set_rank_stride(16);
  b.collective(step, compute, proto::CollectiveCommand::ALL_REDUCE, loss, loss);
  b.call(b.program("step"), step);
  return b.plan;
}

proto::Bucket &bucket(proto::Plan &plan) { return *plan.mutable_buckets(0); }
proto::CollectiveCommand &collective(proto::Plan &plan, int i) { return *command(plan, i).mutable_collective(); }
proto::CollectivePart &part(proto::Plan &plan, int i) { return *collective(plan, i).mutable_parts(0); }

/// The plan with a role for each of its two ranks.
void splitRole(proto::Plan &plan) {
  *plan.add_roles() = plan.roles(0);
  role(plan).set_ranks(1, 0);
  plan.mutable_roles(1)->set_ranks(0, 1);
}

/// The moments' slices are counted over another communicator of the same ranks.
void countSlicesElsewhere(proto::Plan &plan) {
  *plan.add_communicators() = plan.communicators(0);
  plan.mutable_communicators(1)->set_name("same");
  plan.mutable_buckets(1)->mutable_placement()->mutable_window()->set_communicator(1);
}

/// Each rank has a role and a bucket of its own, so that neither bucket is whole.
void sliceTwoBuckets(proto::Plan &plan) {
  splitRole(plan);
  *plan.add_buckets() = plan.buckets(1);
  plan.mutable_buckets(2)->set_name("other moments");
  for (proto::Buffer &buffer : *plan.mutable_roles(1)->mutable_buffers())
    if (buffer.bucket() == 1)
      buffer.set_bucket(2);
}

class PlanReaderRefusesRanks : public testing::TestWithParam<BadPlan> {};

TEST_P(PlanReaderRefusesRanks, ABrokenRule) {
  proto::Plan plan = twoRankPlan();
  GetParam().spoil(plan);
  EXPECT_ERROR(plan::validatePlan(plan), GetParam().error);
}

/// 20,000 roles in one group would be 200 million pairs.
TEST(PlanReaderRanks, RefusesRolesWithoutNumberAtOnce) {
  PlanBuilder b(1, 1);
  b.ranks(20000);
  b.input("x", DType::F32, {1});
  const uint32_t compute = b.queue("compute"), forward = b.routine("forward");
  b.call(b.program("step"), forward);
  const auto w = b.variable("w", DType::F32, {}, 1);
  b.fill(forward, compute, w);
  const proto::Role role = b.role();
  b.plan.clear_roles();
  for (uint32_t rank = 0; rank < 20000; ++rank) {
    proto::Role &own = *b.plan.add_roles() = role;
    own.set_name("r" + std::to_string(rank));
    own.clear_ranks();
    own.add_ranks(rank);
    own.add_ranks(rank);
  }
  EXPECT_ERROR(plan::validatePlan(b.plan), "there are 20000, but a plan has at most 1024");
}

TEST(PlanReaderRanks, TakesASoundPlanOfTwoRanks) {
  proto::Plan plan = twoRankPlan();
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
  splitRole(plan);
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
}

/// A tied weight lies in a bucket of each role that has it, and queues are numbered as each role likes.
TEST(PlanReaderRanks, TakesAVariableInBucketsOfTwoRoles) {
  proto::Plan plan = twoRankPlan();
  splitRole(plan);
  *plan.add_buckets() = plan.buckets(0);
  plan.mutable_buckets(2)->set_name("parameters of the second");
  proto::Role &second = *plan.mutable_roles(1);
  second.mutable_buffers(0)->set_bucket(2);
  second.add_queues()->set_name("compute");
  second.mutable_queues(1)->set_kind(proto::Queue::COMPUTE);
  second.mutable_queues(0)->set_name("idle");
  second.mutable_queues(0)->set_kind(proto::Queue::COPY_IN);
  for (proto::Command &command : *second.mutable_routines(0)->mutable_commands())
    command.set_queue(1);
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
}

const std::vector<BadPlan>
    rankRules =
        {
            BAD(CommunicatorName, "another communicator has it", *p.add_communicators() = p.communicators(0)),
            BAD(CommunicatorAxis, "names axis 1, but there are 1", p.mutable_communicators(0)->set_axes(0, 1)),
            BAD(CommunicatorAxisTwice, "axes are not ascending", p.mutable_communicators(0)->add_axes(0)),
            BAD(BucketName, "another bucket has it", bucket(p).set_name("moments")),
            BAD(BucketDType, "no dtype 0", bucket(p).set_dtype(proto::DTYPE_UNSPECIFIED)),
            BAD(BucketHuge, "more than 2^59", bucket(p).set_elements(UINT64_MAX - 1)),
            BAD(MemberVariable, "names variable 3", bucket(p).mutable_members(0)->set_variable(3)),
            BAD(MemberDType, "variable a is float64, but the bucket is float32",
                variable(p, 0).set_dtype(proto::DTYPE_F64)),
            BAD(MembersOverlap, "overlap the member before, which ends at 3",
                bucket(p).mutable_members(1)->set_element(2)),
            BAD(MemberEnd, "pass the bucket's end at 8", bucket(p).mutable_members(1)->set_element(7)),
            BAD(MemberWraps, "pass the bucket's end at 8", bucket(p).mutable_members(1)->set_element(UINT64_MAX)),
            BAD(SlicesElsewhere, "the slices of bucket moments are counted over the ranks of same",
                countSlicesElsewhere(p)),
            BAD(SlicesMissing, "has slices of it and all has none", sliceTwoBuckets(p)),
            BAD(MemberTwice, "variable a belongs to two buckets of role all, or twice to this one\n  note: bucket ",
                *p.mutable_buckets(1)->mutable_members(0) = bucket(p).members(0)),
            BAD(BufferBucket, "names bucket 2, but there are 2", buffer(p, 0).set_bucket(2)),
            BAD(BufferBoth, "cannot hold a variable too", buffer(p, 1).set_variable(2); variable(p, 2).set_shape(0, 4)),
            BAD(BufferScope, "its scope must be PLAN", buffer(p, 0).set_scope(proto::Buffer::STEP)),
            BAD(BufferWhole, "has 32 bytes, but of bucket parameters a rank holds 16, by its placement",
                *bucket(p).mutable_placement() = p.buckets(1).placement()),
            BAD(BufferSlice, "has 16 bytes, but of bucket moments a rank holds 32, by its placement",
                p.mutable_buckets(1)->clear_placement()),
            BAD(StrideCommunicator, "names communicator 1", part(p, 1).mutable_source()->set_communicator(1)),
            BAD(StrideEnd, "the slice of rank 1 of 2 passes the end", part(p, 1).mutable_source()->set_rank_stride(20)),
            BAD(StrideWraps, "the slice of rank 1 of 2 passes",
                part(p, 1).mutable_source()->set_rank_stride(UINT64_MAX - 3)),
            BAD(StrideMisaligned, "no multiple of its element size 4",
                part(p, 1).mutable_source()->set_rank_stride(14)),
            BAD(StrideOfAnother, "counts the ranks of another communicator",
                {
                  *p.add_communicators() = p.communicators(0);
                  p.mutable_communicators(1)->set_name("other");
                  part(p, 1).mutable_source()->set_communicator(1);
                }),
            BAD(Kind, "no kind of collective 0", collective(p, 0).set_kind(proto::CollectiveCommand::KIND_UNSPECIFIED)),
            BAD(Communicator, "names communicator 4", collective(p, 0).set_communicator(4)),
            BAD(NoParts, "it has no parts", collective(p, 0).clear_parts()),
            BAD(Source, "access must be READ", part(p, 0).mutable_source()->set_access(proto::Operand::WRITE)),
            BAD(Target, "access must be READ_WRITE", part(p, 0).mutable_target()->set_access(proto::Operand::WRITE)),
            BAD(TargetPlain, "access must be WRITE",
                part(p, 1).mutable_target()->set_access(proto::Operand::READ_WRITE)),
            BAD(DTypes, "different dtypes", part(p, 1).mutable_source()->set_dtype(proto::DTYPE_I32)),
            BAD(GatherCount, "ALL_GATHER over 2 ranks makes of 8 bytes no 32",
                part(p, 1).mutable_source()->set_shape(0, 2)),
            BAD(ScatterCount, "REDUCE_SCATTER over 2 ranks makes of 28 bytes no 16",
                part(p, 0).mutable_source()->set_shape(0, 7)),
            BAD(ReduceCount, "ALL_REDUCE over 2 ranks makes of 16 bytes no 4",
                *part(p, 2).mutable_source() = part(p, 0).target();
                part(p, 2).mutable_source()->set_access(proto::Operand::READ)),
            BAD(ExchangeCount, "ALL_TO_ALL over 2 ranks makes of 16 bytes no 32",
                collective(p, 1).set_kind(proto::CollectiveCommand::ALL_TO_ALL)),
            BAD(ExchangeInPlace, "source and target lie in one buffer and are not apart",
                collective(p, 1).set_kind(proto::CollectiveCommand::ALL_TO_ALL);
                part(p, 1).mutable_source()->set_shape(0, 8); part(p, 1).mutable_source()->set_rank_stride(0)),
            BAD(ExchangeSum, "ALL_TO_ALL does not accumulate",
                collective(p, 0).set_kind(proto::CollectiveCommand::ALL_TO_ALL);
                *part(p, 0).mutable_target() = part(p, 0).source();
                part(p, 0).mutable_target()->set_access(proto::Operand::READ_WRITE);
                part(p, 0).mutable_target()->set_buffer(0)),
            BAD(HalfInPlace, "neither apart nor in place", part(p, 1).mutable_source()->set_rank_stride(0)),
            BAD(SumDType, "it sums int32", part(p, 0).mutable_source()->set_dtype(proto::DTYPE_I32);
                part(p, 0).mutable_target()->set_dtype(proto::DTYPE_I32)),
            BAD(NoScratch, "needs scratch of at least 8 bytes", part(p, 0).clear_scratch()),
            BAD(SmallScratch, "needs scratch of at least 8 bytes", part(p, 0).mutable_scratch()->set_shape(0, 7)),
            BAD(ScratchOffset, "begins at no multiple of the element size 4",
                part(p, 0).mutable_scratch()->set_shape(0, 8);
                part(p, 0).mutable_scratch()->set_byte_offset(2)),
            BAD(ScratchAccess, "uint8 with access SCRATCH",
                part(p, 0).mutable_scratch()->set_access(proto::Operand::WRITE)),
            BAD(AccumulateInPlace, "accumulates onto its own source", part(p, 2).set_accumulate(true);
                part(p, 2).mutable_target()->set_access(proto::Operand::READ_WRITE)),
            BAD(AccumulateGather, "ALL_GATHER does not accumulate", part(p, 1).set_accumulate(true);
                part(p, 1).mutable_target()->set_access(proto::Operand::READ_WRITE)),
            BAD(MetricStride, "rank 0's value is the metric",
                {
                  auto *metric = program(p).add_metrics();
                  metric->set_name("loss");
                  *metric->mutable_source() = part(p, 2).source();
                  metric->mutable_source()->set_buffer(0);
                  metric->mutable_source()->set_rank_stride(4);
                }),
            BAD(TwoQueuesOfAKind,
                "queues compute and other both enter communicator data, but of the queues of kind COMPUTE only one may",
                {
                  auto &other = *role(p).add_queues();
                  other.set_name("other");
                  other.set_kind(proto::Queue::COMPUTE);
                  command(p, 1).set_queue(1);
                }),
            BAD(RolesDisagree, "or enter them in another order\n  note: program step, call 0 (routine 0 (",
                splitRole(p);
                role(p).mutable_routines(0)->mutable_commands()->SwapElements(0, 1)),
};
INSTANTIATE_TEST_SUITE_P(Ranks, PlanReaderRefusesRanks, testing::ValuesIn(rankRules),
                         [](const auto &info) { return info.param.name; });
} // namespace
} // namespace ds::test
