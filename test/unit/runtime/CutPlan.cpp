//===- CutPlan.cpp - a parameter that tensor ranks share, by hand -----------===//
#include "test/unit/runtime/CutPlan.h"

#include "core/Crc32c.h"
#include "core/DType.h"
#include "core/Shape.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Placement.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::test {
namespace {

const Shape shape = {4, 6}; // of w

/// Lays ranks out as two along axis data, neighbours along axis tensor.
void addTensorAxis(PlanBuilder &b, uint32_t tensorRanks) {
  if (tensorRanks == 1)
    return;
  proto::Axis &axis = *b.plan.mutable_world()->add_axes();
  axis.set_name("tensor");
  axis.set_size(tensorRanks);
  b.role().set_ranks(1, 2 * tensorRanks - 1);
  proto::Communicator &communicator = *b.plan.add_communicators();
  communicator.set_name("tensor");
  communicator.add_axes(1);
}

/// A variable of w's shape, of which ranks hold pieces.
PlanBuilder::Tensor cutVariable(PlanBuilder &b, const Cut &cut, const std::string &name, proto::Variable::Kind kind) {
  const uint32_t index = b.bareVariable(name, DType::F32, shape, 0, kind);
  proto::Variable &variable = *b.plan.mutable_variables(int(index));
  if (cut.tensorRanks > 1) {
    proto::AxisPlacement &along = *variable.mutable_placement()->add_axes();
    along.set_axis(1);
    along.mutable_shard()->set_dimension(cut.dim);
    along.mutable_shard()->set_repeat(1);
    const uint64_t run = uint64_t(shape[cut.dim]) / cut.runs, part = run / cut.tensorRanks;
    for (uint64_t i = 0; i < cut.runs; ++i) {
      proto::Block &block = *along.mutable_shard()->add_blocks();
      block.set_offset(i * run);
      block.set_stride(part);
      block.set_size(part);
    }
  }
  const auto held = b.tensor(name, DType::F32, plan::pieceShape(variable.placement(), shape), proto::Buffer::PLAN);
  b.role().mutable_buffers(int(held.buffer))->set_variable(index);
  return held;
}

/// Copies a rank's piece of the gradient, run by run.
void copyPiece(PlanBuilder &b, const Cut &cut, uint32_t routine, uint32_t queue, const PlanBuilder::Tensor &whole,
               const PlanBuilder::Tensor &piece) {
  const auto rows = int64_t(cut.dim == 0 ? 1 : shape[0]), row = cut.dim == 0 ? shape[0] * shape[1] : shape[1];
  const int64_t run = row / cut.runs, part = run / cut.tensorRanks;
  for (int64_t i = 0; i < rows * cut.runs; ++i) {
    proto::CopyCommand &copy = *b.copy(routine, queue, whole, piece).mutable_copy();
    proto::Operand &source = *copy.mutable_source(), &target = *copy.mutable_target();
    for (proto::Operand *operand : {&source, &target}) {
      operand->clear_shape();
      operand->add_shape(part);
    }
    source.set_byte_offset(uint64_t(i * run) * sizeof(float));
    target.set_byte_offset(uint64_t(i * part) * sizeof(float));
    if (cut.tensorRanks > 1) {
      source.set_rank_stride(uint64_t(part) * sizeof(float));
      source.set_communicator(1);
    }
  }
}

} // namespace

PlanBuilder cutPlan(const Cut &cut) {
  PlanBuilder b(1, 1);
  b.ranks(2);
  addTensorAxis(b, cut.tensorRanks);
  const uint32_t compute = b.queue("compute"), comm = b.queue("comm", proto::Queue::COLLECTIVE);
  const uint32_t fed = b.event("fed"), reduced = b.event("reduced");
  const auto w = cutVariable(b, cut, "w", proto::Variable::PARAMETER),
             m = cutVariable(b, cut, "m", proto::Variable::OPTIMIZER);
  b.plan.mutable_variables(1)->set_of(0);
  const auto constant = proto::Variable::CONSTANT;
  const auto rate = b.variable("rate", DType::F64, {}, 0.03, constant),
             clip = b.variable("clip", DType::F64, {}, 1, constant),
             done = b.variable("step", DType::I64, {}, 1, constant);
  const Shape sample = {1, shape[0], shape[1]};
  const auto x = b.tensor("x", DType::F32, sample, proto::Buffer::STEP);
  const auto sum = b.tensor("sum", DType::F32, sample, proto::Buffer::STEP);
  const auto g = b.tensor("g", DType::F32, w.shape, proto::Buffer::STEP);
  const uint32_t forward = b.routine("forward"), step = b.program("step");
  signal(b.feed(forward, compute, b.input("x", DType::F32, sample), x), fed);
  auto &reduction = b.collective(forward, comm, proto::CollectiveCommand::ALL_REDUCE, x, sum);
  wait(reduction, fed);
  signal(reduction, reduced);
  const int copies = b.role().routines(int(forward)).commands_size();
  copyPiece(b, cut, forward, compute, sum, g);
  wait(*b.role().mutable_routines(int(forward))->mutable_commands(copies), reduced);
  auto &sgd = b.kernel(forward, compute, "sgd", "mrmrrr", {w, g, m, rate, done, clip});
  attribute(sgd, "momentum").set_number(0.9);
  attribute(sgd, "weight_decay").set_number(0.01);
  attribute(sgd, "nesterov").set_integer(0);
  const auto last = uint32_t(b.role().routines(int(forward)).commands_size()) - 1;
  b.call(step, forward, 0);
  b.life(x, step, forward, 0, forward, 1);
  b.life(sum, step, forward, 1, forward, last - 1);
  b.life(g, step, forward, uint32_t(copies), forward, last);
  return b;
}

void takeFromFile(PlanBuilder &builder, const std::string &folder) {
  std::vector<float> values;
  for (int i = 0; i < 24; ++i)
    values.push_back(float(i * i) / 7 - 3);
  const std::string bytes = "head" + bytesOf(values);
  writeFile(folder + "/w.bin", bytes);
  proto::WeightFile &file = *builder.plan.add_weight_files();
  file.set_path("w.bin");
  file.set_size(bytes.size());
  file.set_crc32c(crc32c(std::as_bytes(std::span(bytes))));
  proto::Source::FileRange &range = *builder.plan.mutable_variables(0)->mutable_source()->mutable_range();
  range.set_offset(4);
  range.set_length(values.size() * sizeof(float));
}

void writeCutData(const std::string &path) {
  std::vector<float> data;
  for (int i = 0; i < 24 * 24; ++i)
    data.push_back(float(i % 31) / 3 - 1.7F * float(i % 7));
  writeFile(path, safetensors(R"({"x":{"dtype":"F32","shape":[24,4,6],"data_offsets":[0,2304]}})", bytesOf(data)));
}

} // namespace ds::test
