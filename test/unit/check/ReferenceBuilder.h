//===- ReferenceBuilder.h - reference programs by hand ---------------------===//
#pragma once

#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds::test {

/// Writes the program for one device into a plan, whose variables are there already. Values and ops have names.
class ReferenceBuilder {
public:
  explicit ReferenceBuilder(PlanBuilder &b) : b_(b) {}

  /// Says that a command is the op of that name.
  void describe(proto::Command &command, const std::string &name) const {
    for (int i = 0; i < b_.plan.reference().ops_size(); ++i)
      if (b_.plan.reference().ops(i).name() == name)
        return command.add_reference(uint32_t(i));
    throw std::runtime_error("no op " + name);
  }

  google::protobuf::RepeatedPtrField<proto::ReferenceOp> &ops() { return *b_.plan.mutable_reference()->mutable_ops(); }
  /// What follows is another function of the program.
  void beginFunction(const char *function) { function_ = function; }

  uint32_t variableNamed(const std::string &name) const {
    for (int i = 0; i < b_.plan.variables_size(); ++i)
      if (b_.plan.variables(i).name() == name)
        return uint32_t(i);
    throw std::runtime_error("no variable " + name);
  }

  /// A value that no op has made: an input.
  uint32_t value(const std::string &name, proto::DType dtype, const Shape &shape) {
    proto::ReferenceValue &value = *b_.plan.mutable_reference()->add_values();
    value.set_name(name);
    value.set_dtype(dtype);
    value.mutable_shape()->Assign(shape.begin(), shape.end());
    return values_[name] = uint32_t(b_.plan.reference().values_size() - 1);
  }

  /// An op without results.
  proto::ReferenceOp &effect(const std::string &name, const std::string &kind, const std::vector<std::string> &operands,
                             const std::vector<std::string> &variables) {
    proto::ReferenceOp &op = *b_.plan.mutable_reference()->add_ops();
    op.set_op(kind);
    op.set_name(name);
    op.set_function(function_);
    for (const std::string &operand : operands)
      op.add_operands(values_.at(operand));
    for (const std::string &variable : variables)
      op.add_variables(variableNamed(variable));
    return op;
  }
  /// An op whose result has its name.
  void op(const std::string &name, const std::string &kind, const std::vector<std::string> &operands,
          const std::vector<std::string> &variables, const Shape &shape, proto::DType dtype = proto::DTYPE_F32) {
    effect(name, kind, operands, variables).add_results(value(name, dtype, shape));
  }

  /// An attribute of the op before, to be given its value.
  proto::Attribute &attribute(const char *name) {
    proto::Reference &reference = *b_.plan.mutable_reference();
    proto::Attribute &attribute = *reference.mutable_ops(reference.ops_size() - 1)->add_attributes();
    attribute.set_name(name);
    return attribute;
  }

private:
  PlanBuilder &b_;
  const char *function_ = "microbatch";
  std::map<std::string, uint32_t> values_; // by name
};

} // namespace ds::test
