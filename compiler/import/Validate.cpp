//===- Validate.cpp - the structure of a model -----------------------------------===//
#include "compiler/import/Flatten.h"
#include "compiler/import/files/Failure.h"

#include "llvm/Support/JSON.h"

#include <unordered_set>

namespace ds::import {
namespace {

using Names = std::unordered_set<std::string>;

void checkKind(const onnx::ModelProto &model) {
  if (model.graph().sparse_initializer_size() > 0)
    throw Failure("the model has sparse initializers, which are not supported; store them dense");
}

/// Names end up in plans and checkpoints, whose formats are UTF-8.
void checkText(const std::string &text) {
  if (!llvm::json::isUTF8(text))
    throw Failure("a name in the model is not UTF-8: '" + llvm::json::fixUTF8(text) + "'");
}

void checkNames(const onnx::GraphProto &graph) {
  for (const onnx::TensorProto &tensor : graph.initializer())
    checkText(tensor.name());
  for (const auto *list : {&graph.input(), &graph.output()})
    for (const onnx::ValueInfoProto &value : *list)
      checkText(value.name());
}

} // namespace

void checkNames(const FlatGraph &graph) {
  for (const FlatNode &node : graph.nodes) {
    checkText(node.proto->name());
    checkText(node.proto->op_type());
    for (const auto *list : {&node.proto->input(), &node.proto->output()})
      for (const std::string &name : *list)
        checkText(name);
  }
}

namespace {

/// ONNX Runtime's training artifacts: an optimized joint graph whose gradients are already written out.
void checkProducer(const FlatGraph &graph) {
  for (const FlatNode &node : graph.nodes) {
    if (node.proto->domain() == "com.microsoft" && node.proto->op_type().ends_with("Grad"))
      throw Failure(describe(node) +
                    " belongs to a training graph of ONNX Runtime, which is not available yet; give the "
                    "forward graph that it was made from");
  }
}

Names sources(const onnx::GraphProto &graph) {
  Names defined, initializers, inputs;
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    if (tensor.name().empty())
      throw Failure("an initializer has no name");
    if (!initializers.insert(tensor.name()).second)
      throw Failure("initializer '" + tensor.name() + "' is there twice");
    defined.insert(tensor.name());
  }
  for (const onnx::ValueInfoProto &input : graph.input()) {
    if (input.name().empty())
      throw Failure("an input of the model has no name");
    if (!inputs.insert(input.name()).second)
      throw Failure("input '" + input.name() + "' is there twice");
    defined.insert(input.name());
  }
  return defined;
}

} // namespace

std::set<std::string> validate(const onnx::ModelProto &model, const FlatGraph &graph,
                               const std::set<std::string> &outside) {
  checkKind(model);
  checkNames(model.graph());
  checkNames(graph);
  checkProducer(graph);
  Names defined = sources(model.graph());
  Names made;
  for (const FlatNode &node : graph.nodes)
    for (const std::string &output : node.proto->output())
      if (!output.empty() && (!made.insert(output).second || defined.count(output)))
        throw Failure(describe(node) + ": value '" + output + "' is already made elsewhere");
  std::set<std::string> fromOutside;
  for (const FlatNode &node : graph.nodes) {
    for (const std::string &input : node.proto->input()) {
      if (input.empty() || defined.count(input))
        continue;
      if (outside.count(input) && !made.count(input))
        fromOutside.insert(input);
      else
        throw Failure(describe(node) + " reads '" + input + "', which " +
                      (made.count(input) ? "a later node makes: nodes must be sorted, without cycles"
                                         : "no input, initializer or node defines; if it is a weight that was left "
                                           "out, give --weights F.safetensors"));
    }
    for (const std::string &output : node.proto->output())
      defined.insert(output);
  }
  if (model.graph().output_size() == 0)
    throw Failure("the model has no output; the loss must be one");
  for (const onnx::ValueInfoProto &output : model.graph().output())
    if (!defined.count(output.name()))
      throw Failure("output '" + output.name() + "' is made by no node");
  return fromOutside;
}

} // namespace ds::import
