//===- ShardedPlan.cpp - a plan as ZeRO 2 makes it, by hand ---------------===//
#include "test/unit/runtime/ShardedPlan.h"

#include "core/DType.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::test {
namespace {

using Kind = proto::CollectiveCommand;

/// `count` elements of a copy, between places in its source and target.
void copyElements(PlanBuilder &b, uint32_t routine, uint32_t queue, const PlanBuilder::Tensor &source, uint64_t from,
                  const PlanBuilder::Tensor &target, uint64_t to, int64_t count) {
  proto::CopyCommand &copy = *b.copy(routine, queue, source, target).mutable_copy();
  for (proto::Operand *operand : {copy.mutable_source(), copy.mutable_target()}) {
    operand->clear_shape();
    operand->add_shape(count);
  }
  copy.mutable_source()->set_byte_offset(from * 4);
  copy.mutable_target()->set_byte_offset(to * 4);
}

} // namespace

PlanBuilder shardedPlan(uint32_t ranks, uint64_t accumulation) {
  PlanBuilder b(1, accumulation);
  b.ranks(ranks);
  const uint32_t compute = b.queue("compute"), comm = b.queue("comm", proto::Queue::COLLECTIVE);
  const uint32_t written = b.event("written"), reduced = b.event("reduced"), updated = b.event("updated");
  const uint32_t a = b.bareVariable("a", DType::F32, {3}, 1), c = b.bareVariable("c", DType::F32, {2}, 2);
  b.plan.mutable_variables(int(a))->mutable_source()->mutable_random()->set_distribution("normal");
  b.plan.mutable_variables(int(a))->mutable_source()->mutable_random()->set_deviation(1);
  const uint32_t p = b.bucket("p", {a, c}, 4);
  const auto elements = int64_t(b.plan.buckets(int(p)).elements()), slice = elements / ranks;
  const uint32_t m = b.bareVariable("m", DType::F32, {elements}, 0, proto::Variable::OPTIMIZER);
  const auto whole = b.bucketTensor(p, false), moments = b.bucketTensor(b.bucket("moments", {m}, 4), true);
  const auto constant = proto::Variable::CONSTANT;
  const auto rate = b.variable("rate", DType::F64, {}, 0.03, constant),
             clip = b.variable("clip", DType::F64, {}, 1, constant),
             done = b.variable("step", DType::I64, {}, 1, constant);
  const auto x = b.tensor("x", DType::F32, {1, 5}, proto::Buffer::CALL);
  const auto sum = b.tensor("sum", DType::F32, {}, proto::Buffer::SLOT);
  const auto g = b.tensor("g", DType::F32, {elements}, proto::Buffer::STEP);
  const auto owned = b.tensor("owned", DType::F32, {slice}, proto::Buffer::STEP);
  const auto loss = b.tensor("loss", DType::F32, {}, proto::Buffer::STEP);
  const uint32_t input = b.input("x", DType::F32, {1, 5});
  const uint32_t begin = b.routine("begin"), forward = b.routine("forward"), update = b.routine("update");
  b.fill(begin, compute, owned);
  b.fill(begin, compute, loss);
  b.feed(forward, compute, input, x);
  wait(b.fill(forward, compute, g), reduced, 1);
  copyElements(b, forward, compute, x, 0, g, 0, 3);
  copyElements(b, forward, compute, x, 3, g, 4, 2);
  auto &total = b.kernel(forward, compute, "reduce_sum", "rw", {x, sum});
  proto::Integers &axes = *attribute(total, "axes").mutable_integers();
  axes.add_values(0);
  axes.add_values(1);
  signal(total, written);
  auto &reduction = b.collective(forward, comm, Kind::REDUCE_SCATTER, g, owned);
  b.implements(reduction, "gradient of a and c");
  accumulate(reduction);
  wait(reduction, written);
  auto &losses = b.collective(forward, comm, Kind::ALL_REDUCE, sum, loss);
  accumulate(losses);
  signal(losses, reduced);
  auto &sgd = b.kernel(update, compute, "sgd", "mrmrrr", {whole, owned, moments, rate, done, clip});
  attribute(sgd, "momentum").set_number(0.9);
  attribute(sgd, "weight_decay").set_number(0.01);
  attribute(sgd, "nesterov").set_integer(0);
  auto &gather = b.collective(update, comm, Kind::ALL_GATHER, whole, whole);
  for (proto::Operand *operand :
       {b.role().mutable_routines(int(update))->mutable_commands(0)->mutable_kernel()->mutable_operands(0),
        gather.mutable_collective()->mutable_parts(0)->mutable_source()}) {
    operand->set_shape(0, slice);
    operand->set_rank_stride(uint64_t(slice) * 4);
  }
  auto &commands = *b.role().mutable_routines(int(update))->mutable_commands();
  wait(commands[0], reduced);
  signal(commands[0], updated);
  wait(commands[1], updated);
  const uint32_t step = b.program("step");
  b.call(step, begin);
  for (uint32_t k = 0; k < accumulation; ++k)
    b.call(step, forward, k);
  b.call(step, update, uint32_t(accumulation) - 1);
  b.metric(step, "loss", loss);
  b.life(x, step, forward, 0, forward, 4);
  b.life(sum, step, forward, 4, forward, 6);
  b.life(g, step, forward, 1, forward, 5);
  b.life(owned, step, begin, 0, update, 0);
  b.life(loss, step, begin, 1, forward, 6);
  return b;
}

void writeShardedData(const std::string &path) {
  std::vector<float> data;
  for (int i = 0; i < 24 * 5; ++i)
    data.push_back(float(i % 17) / 3 - 1.7F * float(i % 5));
  writeFile(path, safetensors(R"({"x":{"dtype":"F32","shape":[24,5],"data_offsets":[0,480]}})", bytesOf(data)));
}

PlanBuilder failingShardedPlan(uint32_t ranks, uint64_t accumulation) {
  PlanBuilder b = shardedPlan(ranks, accumulation);
  b.plan.mutable_inputs(0)->set_dtype(proto::DTYPE_I32);
  b.plan.mutable_inputs(0)->set_limit(10);
  b.role().mutable_routines(1)->mutable_commands(0)->mutable_feed()->mutable_target()->set_dtype(proto::DTYPE_I32);
  return b;
}

void writeBadShardedData(const std::string &path) {
  std::string bytes(24 * 5, '\1');
  bytes[5] = 11;
  writeFile(path, safetensors(R"({"x":{"dtype":"U8","shape":[24,5],"data_offsets":[0,120]}})", bytes));
}

} // namespace ds::test
