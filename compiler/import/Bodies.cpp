//===- Bodies.cpp - the bodies of If, Loop, Scan and SequenceMap ------------------===//
//
// A plan is static, so control flow is resolved while importing: the branch that is taken, or the body once for each
// iteration, becomes part of the graph around it.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/GraphImporter.h"
#include "compiler/import/files/Failure.h"

namespace ds::import {

/// The body's inputs and initializers, under their names in this use of it.
void GraphImporter::defineInBody(const onnx::GraphProto &body, const std::string &prefix, std::vector<Value> inputs) {
  for (int i = 0; i < body.input_size(); ++i)
    define(prefix + body.input(i).name(), std::move(inputs[size_t(i)]));
  for (const onnx::TensorProto &tensor : body.initializer())
    define(prefix + tensor.name(),
           Value::of(literalConstant(tensor, "initializer '" + tensor.name() + "' of the body", budget_)));
}

std::vector<Value> GraphImporter::importBody(const onnx::GraphProto &body, int64_t opset, std::vector<Value> inputs) {
  constexpr int64_t maxUnrolled = 100'000; // nodes
  if (size_t(body.input_size()) != inputs.size())
    throw Failure("the body has " + std::to_string(body.input_size()) + " inputs and is given " +
                  std::to_string(inputs.size()));
  const std::string prefix = "body@" + std::to_string(bodies_++) + "/";
  const FlatGraph flat = flattenBody(model_.proto, body, opset, prefix);
  checkNames(flat);
  unrolled_ += 1 + int64_t(flat.nodes.size());
  unrolledBytes_ += body.ByteSizeLong();
  if (unrolled_ > maxUnrolled || unrolledBytes_ > options_.maxBytes)
    throw Failure("unrolled, the model's control flow has more than " + std::to_string(maxUnrolled) +
                  " nodes, or too large ones; write the loop as operators on whole tensors");
  std::set<std::string> made;
  auto make = [&](const std::string &name) {
    if (!name.empty() && (uses_.count(name) || !made.insert(name).second))
      throw Failure("value '" + name + "' is already made elsewhere");
  };
  for (const onnx::ValueInfoProto &input : body.input())
    make(prefix + input.name());
  for (const onnx::TensorProto &tensor : body.initializer())
    make(prefix + tensor.name());
  std::vector<const FlatNode *> nodes;
  for (const FlatNode &node : flat.nodes) {
    nodes.push_back(&node);
    for (const std::string &output : node.proto->output())
      make(output);
  }
  std::vector<std::string> results; // a body may also hand on what lies around it
  for (const onnx::ValueInfoProto &output : body.output())
    results.push_back(made.count(prefix + output.name()) ? prefix + output.name() : output.name());
  countUses(nodes);
  for (const std::string &result : results)
    ++uses_[result];
  defineInBody(body, prefix, std::move(inputs));
  for (const FlatNode *node : nodes) {
    importNode(*node);
    forgetOperands(*node);
  }
  std::vector<Value> values;
  for (const std::string &result : results)
    values.push_back(lookup(result));
  for (const std::string &result : results)
    if (--uses_[result] == 0)
      values_.erase(result);
  return values;
}

} // namespace ds::import
