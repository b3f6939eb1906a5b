//===- RestoredNodes.cpp - nodes that make of parameters what a model reads ---===//
#include "compiler/import/match/RestoredNodes.h"

#include <utility>

namespace ds::import {

static void addInts(onnx::NodeProto &node, const char *name, const std::vector<int64_t> &values) {
  onnx::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(7); // INTS
  attribute.mutable_ints()->Assign(values.begin(), values.end());
}

void RestoredNodes::setInput(FlatNode &node, int i, const std::string &name) {
  if (node.proto->input(i) == name)
    return;
  onnx::NodeProto &copy = graph_.inlined.emplace_back(*node.proto);
  copy.set_input(i, name);
  node.proto = &copy;
}

void RestoredNodes::addInput(FlatNode &node, const std::string &name) {
  onnx::NodeProto &copy = graph_.inlined.emplace_back(*node.proto);
  copy.add_input(name);
  node.proto = &copy;
}

void RestoredNodes::insert() { graph_.nodes.insert(graph_.nodes.begin(), made_.begin(), made_.end()); }

std::string RestoredNodes::valueOf(const Match &match, const Shape &shape) {
  if (match.form == Form::Same)
    return match.parameter;
  if (match.form == Form::Transposed)
    return made("Transpose", match.parameter, match.parameter + "::transposed", 13);
  if (match.form == Form::Repeated || match.form == Form::Reshaped)
    return inShape(match.parameter, shape, match.form == Form::Repeated);
  if (match.form == Form::PlusOne)
    return plusOne(match.parameter);
  return gathered(match, shape);
}

std::string RestoredNodes::plusOne(const std::string &parameter) {
  onnx::NodeProto one, sum;
  onnx::AttributeProto &value = *one.add_attribute();
  value.set_name("value_float");
  value.set_type(1); // FLOAT
  value.set_f(1);
  sum.add_input(parameter);
  sum.add_input(made("Constant", "", "::one", 13, one));
  return made("Add", "", parameter + "::plus1", 13, sum);
}

/// Rows of a parameter by indices that are known.
std::string RestoredNodes::gathered(const Match &match, const Shape &shape) {
  std::string rows = match.parameter + "::rows";
  for (const int64_t row : match.rows)
    rows += "," + std::to_string(row);
  onnx::NodeProto indices, gather;
  addInts(indices, "value_ints", match.rows);
  gather.add_input(match.parameter);
  gather.add_input(made("Constant", "", rows + "::indices", 13, indices));
  return inShape(made("Gather", "", rows, 13, gather), shape, false);
}

std::string RestoredNodes::inShape(const std::string &value, const Shape &shape, bool repeats) {
  onnx::NodeProto node;
  if (!repeats) {
    addInts(node, "shape", shape);
    return made("Reshape", value, value + "::as" + toString(shape), 1, node);
  }
  onnx::NodeProto constant;
  addInts(constant, "value_ints", shape);
  const std::string dims = made("Constant", "", value + "::shape" + toString(shape), 13, constant);
  node.add_input(value);
  node.add_input(dims);
  return made("Expand", "", value + "::to" + toString(shape), 13, node);
}

std::string RestoredNodes::made(const char *op, const std::string &input, const std::string &output, int64_t opset,
                                onnx::NodeProto node) {
  if (!outputs_.insert(output).second)
    return output;
  node.set_op_type(op);
  node.set_name(output);
  if (!input.empty())
    node.add_input(input);
  node.add_output(output);
  graph_.inlined.push_back(std::move(node));
  made_.push_back({&graph_.inlined.back(), opset});
  return output;
}

} // namespace ds::import
