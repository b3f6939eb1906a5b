//===- Parts.h - kernels on the parts that ranks along an axis have ----------===//
#pragma once

#include "compiler/check/meaning/Meaning.h"
#include "test/unit/check/ReferenceBuilder.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ds::check::parts {

using namespace ds::test;

/// Values of a reference program on a mesh of one axis, and kernels on parts of them.
class Parts {
public:
  explicit Parts(uint32_t ranks = 2) : ranks_(ranks), reference(b) {
    b.ranks(ranks);
    b.plan.mutable_world()->mutable_axes(0)->set_name("tensor");
    b.queue("compute");
    b.routine("step");
  }

  /// Sizes of the runs into which a dimension is cut, each for all ranks; none: it is one run.
  static Spread cut(const Shape &shape, uint32_t dimension, Shape runs, uint32_t ranks) {
    proto::Shard shard;
    shard.set_dimension(dimension);
    shard.set_repeat(1);
    if (runs.empty())
      runs = {shape[dimension]};
    uint64_t offset = 0;
    for (const int64_t run : runs) {
      proto::Block &block = *shard.add_blocks();
      block.set_offset(offset);
      block.set_stride(uint64_t(run) / ranks);
      block.set_size(uint64_t(run) / ranks);
      offset += uint64_t(run);
    }
    return {0, {}, Cut::of(shape, shard)};
  }
  uint32_t whole(const std::string &name) { return meaning().values().of(values_.at(name)); }
  uint32_t part(const std::string &name, uint32_t dimension, const Shape &runs = {}) {
    const proto::ReferenceValue &value = b.plan.reference().values(int(values_.at(name)));
    return meaning().values().placed(whole(name),
                                     cut({value.shape().begin(), value.shape().end()}, dimension, runs, ranks_));
  }
  uint32_t terms(const std::string &name) {
    return meaning().values().placed(whole(name), {0, proto::AxisPlacement::SUM, {}});
  }

  void value(const std::string &name, const Shape &shape, proto::DType dtype = proto::DTYPE_F32) {
    values_[name] = reference.value(name, dtype, shape);
  }
  /// An op whose result has its name; its attributes are those of the command.
  void op(const std::string &name, const std::string &kind, const std::vector<std::string> &operands,
          const Shape &shape) {
    reference.op(name, "train." + kind, operands, {}, shape);
    values_[name] = uint32_t(b.plan.reference().values_size() - 1);
  }
  void integers(const char *name, const Shape &values) {
    reference.attribute(name).mutable_integers()->mutable_values()->Assign(values.begin(), values.end());
  }

  proto::Command &kernel(const std::string &kind, const std::vector<Shape> &shapes, const std::string &op = {}) {
    std::vector<PlanBuilder::Tensor> operands;
    for (const Shape &shape : shapes)
      operands.push_back(b.tensor(kind, DType::F32, shape, proto::Buffer::CALL));
    proto::Command &command = b.kernel(0, 0, kind, std::string(shapes.size() - 1, 'r') + "w", operands);
    if (!op.empty())
      reference.describe(command, op);
    return command;
  }
  static proto::Integers &integers(proto::Command &command, const char *name, const Shape &values) {
    proto::Integers &integers = *attribute(command, name).mutable_integers();
    integers.mutable_values()->Assign(values.begin(), values.end());
    return integers;
  }
  static void step(proto::Integers &integers, const Shape &steps) {
    integers.add_rank_steps()->mutable_values()->Assign(steps.begin(), steps.end());
  }

  /// Attributes of attention, of the op before and of its command.
  static void addFlags(ReferenceBuilder &reference) {
    for (const char *flag : {"causal", "mask", "bshd"})
      reference.attribute(flag).set_integer(0);
    reference.attribute("scale").set_number(1);
  }
  static void addFlags(proto::Command &command) {
    command.mutable_kernel()->mutable_operands(3)->set_access(proto::Operand::WRITE);
    for (const char *flag : {"causal", "mask", "bshd"})
      attribute(command, flag).set_integer(0);
    attribute(command, "scale").set_number(1);
  }

  /// What the last operand of a kernel holds then.
  uint32_t result(const proto::Command &command, std::vector<uint32_t> held) {
    held.push_back(Values::unknown);
    return meaning().resultsOf(command, held).back().value;
  }
  std::string refusal(const proto::Command &command, const std::vector<uint32_t> &held) {
    try {
      return "none, but " + meaning().values().name(result(command, held));
    } catch (const Mismatch &mismatch) {
      return mismatch.sentence;
    }
  }
  Meaning &meaning() {
    if (!meaning_)
      meaning_ = std::make_unique<Meaning>(b.plan);
    return *meaning_;
  }

private:
  uint32_t ranks_;

public:
  PlanBuilder b;
  ReferenceBuilder reference;

private:
  std::map<std::string, uint32_t> values_; // by name: of the reference program
  std::unique_ptr<Meaning> meaning_;
};

} // namespace ds::check::parts
