//===- PipelineReference.cpp - what PipelinePlan's commands implement -----===//
#include "test/unit/runtime/PipelineReference.h"

#include "core/DType.h"
#include "core/Shape.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds::test {
namespace {

/// The single-device program, and which command of which routine implements what of it.
class Reference {
public:
  explicit Reference(PlanBuilder &b) : b_(b) {
    for (const char *name : {"a", "c"})
      b.gradientOf(variableNamed(name));
    b.bareVariable("loss", DType::F32, {}, 0, proto::Variable::OPTIMIZER);
    value("x");
    op("h", "train.matmul", {"x", op("a", "train.read", {}, {"a"})});
    op("y", "train.matmul", {"h", op("c", "train.read", {}, {"c"})});
    op("sum", "train.reduce_sum", {"y"});
    proto::Integers &axes = *last("axes").mutable_integers();
    for (int64_t axis : {0, 1})
      axes.add_values(axis);
    number(op("dy", "train.constant", {}), "value", 1);
    flag(op("dc", "train.matmul", {"h", "dy"}), "trans_a");
    flag(op("dh", "train.matmul", {"dy", "c"}), "trans_b");
    flag(op("da", "train.matmul", {"x", "dh"}), "trans_a");
    op("loss", "train.accumulate", {"sum"}, {"loss"});
    op("a::gradient", "train.accumulate", {"da"}, {"a::gradient"});
    op("c::gradient", "train.accumulate", {"dc"}, {"c::gradient"});
    function_ = "update";
    for (const char *scalar : {"rate", "step", "clip"})
      op(scalar, "train.read", {}, {scalar});
    for (const char *name : {"a", "c"})
      op(std::string("part ") + name, "train.block_sum_squares",
         {op(std::string("gradient ") + name, "train.read", {}, {std::string(name) + "::gradient"})});
    op("norm", "train.global_norm", {"part a", "part c"});
    for (const std::string name : {"a", "c"}) {
      op("sgd " + name, "train.sgd", {"rate", "step", "clip"}, {name, name + "::gradient"});
      last("momentum").set_number(0);
      last("weight_decay").set_number(0.01);
    }
    op("increment", "train.increment", {}, {"step"});
  }

  /// Command `index` of a routine implements the op called `name`.
  void at(int role, const char *routine, int index, const char *name) {
    for (proto::Routine &candidate : *b_.plan.mutable_roles(role)->mutable_routines())
      for (int i = 0; i < b_.plan.reference().ops_size(); ++i)
        if (candidate.name() == routine && b_.plan.reference().ops(i).name() == name)
          candidate.mutable_commands(index)->add_reference(uint32_t(i));
  }

private:
  struct Type {
    proto::DType dtype;
    Shape shape;
  };
  static const std::map<std::string, Type> &types() {
    constexpr auto f32 = proto::DTYPE_F32, f64 = proto::DTYPE_F64;
    static const std::map<std::string, Type> all = {
        {"x", {f32, {1, 5}}},          {"a", {f32, {5, 3}}},   {"h", {f32, {1, 3}}},   {"c", {f32, {3, 2}}},
        {"y", {f32, {1, 2}}},          {"sum", {f32, {}}},     {"dy", {f32, {1, 2}}},  {"dc", {f32, {3, 2}}},
        {"dh", {f32, {1, 3}}},         {"da", {f32, {5, 3}}},  {"rate", {f64, {}}},    {"step", {proto::DTYPE_I64, {}}},
        {"clip", {f64, {}}},           {"part a", {f64, {1}}}, {"part c", {f64, {1}}}, {"gradient a", {f32, {5, 3}}},
        {"gradient c", {f32, {3, 2}}}, {"norm", {f64, {}}}};
    return all;
  }

  uint32_t variableNamed(const std::string &name) const {
    for (int i = 0; i < b_.plan.variables_size(); ++i)
      if (b_.plan.variables(i).name() == name)
        return uint32_t(i);
    throw std::runtime_error("no variable " + name);
  }

  uint32_t value(const std::string &name) {
    proto::Reference &reference = *b_.plan.mutable_reference();
    for (int i = 0; i < reference.values_size(); ++i)
      if (reference.values(i).name() == name)
        return uint32_t(i);
    proto::ReferenceValue &value = *reference.add_values();
    value.set_name(name);
    const Type &type = types().at(name);
    value.set_dtype(type.dtype);
    value.mutable_shape()->Assign(type.shape.begin(), type.shape.end());
    return uint32_t(reference.values_size() - 1);
  }

  std::string op(const std::string &name, const std::string &kind, const std::vector<std::string> &operands,
                 const std::vector<std::string> &variables = {}) {
    proto::ReferenceOp &op = *b_.plan.mutable_reference()->add_ops();
    op.set_op(kind);
    op.set_name(name);
    op.set_function(function_);
    for (const std::string &operand : operands)
      op.add_operands(value(operand));
    for (const std::string &variable : variables)
      op.add_variables(variableNamed(variable));
    if (kind != "train.accumulate" && kind != "train.sgd" && kind != "train.increment")
      op.add_results(value(name));
    return name;
  }

  proto::Attribute &last(const char *name) {
    proto::Reference &reference = *b_.plan.mutable_reference();
    proto::Attribute &attribute = *reference.mutable_ops(reference.ops_size() - 1)->add_attributes();
    attribute.set_name(name);
    return attribute;
  }
  void flag(const std::string &, const char *name) { last(name).set_integer(1); }
  void number(const std::string &, const char *name, double number) { last(name).set_number(number); }

  PlanBuilder &b_;
  const char *function_ = "microbatch";
};

} // namespace

void describePipeline(PlanBuilder &b) {
  Reference reference(b);
  reference.at(0, "forward", 1, "h");
  reference.at(0, "backward", 0, "da");
  reference.at(0, "backward", 1, "a::gradient");
  reference.at(0, "update", 0, "part a");
  reference.at(0, "update", 3, "sgd a");
  reference.at(1, "forward", 0, "y");
  reference.at(1, "forward", 1, "sum");
  reference.at(1, "forward", 2, "loss");
  reference.at(1, "backward", 0, "dc");
  reference.at(1, "backward", 1, "dh");
  reference.at(1, "backward", 2, "c::gradient");
  reference.at(1, "update", 0, "part c");
  reference.at(1, "update", 3, "sgd c");
  for (int role : {0, 1}) {
    reference.at(role, "update", 2, "norm");
    reference.at(role, "update", 4, "increment");
  }
}

} // namespace ds::test
