//===- TrainingInfo.cpp - a training algorithm that the model file brings ----===//
#include "compiler/import/TrainingInfo.h"

#include "compiler/import/Constant.h"
#include "compiler/import/Types.h"
#include "compiler/import/Weights.h"
#include "compiler/import/files/Failure.h"

#include <cmath>

namespace ds::import {
namespace {

using Names = std::set<std::string>;

Names outputNames(const onnx::GraphProto &graph) {
  Names names;
  for (const onnx::ValueInfoProto &output : graph.output())
    names.insert(output.name());
  return names;
}

/// "key <- value" entries, each key once.
std::vector<std::pair<std::string, std::string>> readBinding(const Entries &entries, const std::string &field) {
  std::vector<std::pair<std::string, std::string>> binding;
  Names keys;
  for (const onnx::StringStringEntryProto &entry : entries) {
    if (!keys.insert(entry.key()).second)
      throw Failure("training_info: " + field + " names '" + entry.key() + "' twice; a key stands there once");
    binding.emplace_back(entry.key(), entry.value());
  }
  return binding;
}

Shape shapeOf(const onnx::TensorProto &tensor) { return {tensor.dims().begin(), tensor.dims().end()}; }

//===-- initialization --------------------------------------------------------===//

/// Reads what the initialization's nodes give to one initializer. They run once, before training, so only those are
/// known that a plan's sources of first values stand for.
class Initialization {
public:
  explicit Initialization(const onnx::GraphProto &graph) : graph_(graph) {}

  /// Gives `target` the value `name`: by a rule, or as the tensor itself.
  void bind(onnx::TensorProto &target, std::optional<InlineData> &data, const std::string &name,
            std::map<std::string, InitialValue> &drawn) const {
    for (const onnx::TensorProto &tensor : graph_.initializer())
      if (tensor.name() == name)
        return replace(target, data, tensor);
    const onnx::NodeProto *node = maker(name);
    const std::string &op = node->op_type();
    if (op == "Identity" && node->input_size() == 1)
      return bind(target, data, node->input(0), drawn);
    if (op == "Constant" && attribute(*node, "value"))
      return replace(target, data, attribute(*node, "value")->t());
    checkDrawn(*node, target);
    if (op == "ConstantOfShape")
      drawn[target.name()] = {InitialValue::Rule::Constant, fillOf(*node, target)};
    else if (op == "RandomNormal" || op == "RandomNormalLike")
      drawn[target.name()] = {InitialValue::Rule::Normal, number(*node, "mean", 0), number(*node, "scale", 1)};
    else if (op == "RandomUniform" || op == "RandomUniformLike")
      drawn[target.name()] = uniform(number(*node, "low", 0), number(*node, "high", 1));
    else
      throw Failure("training_info: node '" + node->name() + "' (" + op +
                    ") is not supported in the initialization; RandomNormal, RandomUniform, their Like forms, "
                    "Constant, ConstantOfShape and Identity are");
  }

private:
  const onnx::NodeProto *maker(const std::string &name) const {
    // Nodes are sorted, so that following Identity ends.
    for (const onnx::NodeProto &node : graph_.node())
      if (node.output_size() == 1 && node.output(0) == name)
        return &node;
    throw Failure("training_info: initialization_binding takes '" + name + "', which the initialization does not make");
  }

  static const onnx::AttributeProto *attribute(const onnx::NodeProto &node, const std::string &name) {
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.name() == name)
        return &attribute;
    return nullptr;
  }
  static double number(const onnx::NodeProto &node, const std::string &name, double otherwise) {
    const onnx::AttributeProto *found = attribute(node, name);
    return found ? double(found->f()) : otherwise;
  }
  static InitialValue uniform(double low, double high) {
    return {InitialValue::Rule::Uniform, (low + high) / 2, (high - low) / (2 * std::sqrt(3.0))};
  }

  static void replace(onnx::TensorProto &target, std::optional<InlineData> &data, const onnx::TensorProto &value) {
    if (value.data_type() != target.data_type() || shapeOf(value) != shapeOf(target))
      throw Failure("training_info: the initialization gives '" + target.name() + "' " +
                    onnxTypeName(value.data_type()) + " " + toString(shapeOf(value)) + ", but the initializer is " +
                    onnxTypeName(target.data_type()) + " " + toString(shapeOf(target)));
    const std::string name = target.name();
    target = value;
    target.set_name(name);
    data.reset();
  }

  static void checkDrawn(const onnx::NodeProto &node, const onnx::TensorProto &target) {
    const onnx::AttributeProto *shape = attribute(node, "shape"), *type = attribute(node, "dtype");
    if (shape && Shape(shape->ints().begin(), shape->ints().end()) != shapeOf(target))
      throw Failure("training_info: node '" + node.name() + "' (" + node.op_type() + ") draws " +
                    toString(Shape(shape->ints().begin(), shape->ints().end())) + " for '" + target.name() +
                    "', which is " + toString(shapeOf(target)));
    if (type && type->i() != target.data_type())
      throw Failure("training_info: node '" + node.name() + "' (" + node.op_type() + ") draws " +
                    onnxTypeName(int(type->i())) + " for '" + target.name() + "', which is " +
                    onnxTypeName(target.data_type()));
  }

  static double fillOf(const onnx::NodeProto &node, const onnx::TensorProto &target) {
    const onnx::AttributeProto *value = attribute(node, "value");
    if (!value)
      return 0;
    const std::optional<DType> dtype = dtypeFromOnnx(value->t().data_type());
    if (!dtype || value->t().data_type() != target.data_type())
      throw Failure("training_info: the initialization fills '" + target.name() + "' with " +
                    onnxTypeName(value->t().data_type()) + ", but the initializer is " +
                    onnxTypeName(target.data_type()));
    const std::vector<char> bytes = literalElements(value->t(), *dtype, "the fill value of '" + target.name() + "'");
    return Constant::dense(*dtype, shapeOf(value->t()), bytes).firstAsDouble();
  }

  const onnx::GraphProto &graph_;
};

/// Only the algorithm may use the other's values.
void checkOrder(const onnx::GraphProto &graph, const onnx::GraphProto &algorithm) {
  Names made;
  for (const onnx::TensorProto &tensor : algorithm.initializer())
    made.insert(tensor.name());
  for (const onnx::NodeProto &node : algorithm.node())
    made.insert(node.output().begin(), node.output().end());
  made.erase("");
  for (const onnx::NodeProto &node : graph.node())
    for (const std::string &input : node.input())
      if (made.count(input))
        throw Failure("training_info: node '" + node.name() + "' (" + node.op_type() + ") of the graph reads '" +
                      input + "' of the training algorithm; only the algorithm may use the graph's values");
}

void append(onnx::GraphProto &graph, std::vector<std::optional<InlineData>> &data, const onnx::GraphProto &algorithm) {
  graph.mutable_node()->MergeFrom(algorithm.node());
  graph.mutable_initializer()->MergeFrom(algorithm.initializer());
  data.resize(size_t(graph.initializer_size()));
  Names inputs, outputs = outputNames(graph);
  for (const onnx::ValueInfoProto &input : graph.input())
    inputs.insert(input.name());
  for (const onnx::ValueInfoProto &input : algorithm.input())
    if (inputs.insert(input.name()).second)
      *graph.add_input() = input;
  for (const onnx::ValueInfoProto &output : algorithm.output())
    if (outputs.insert(output.name()).second)
      *graph.add_output() = output;
}

} // namespace

TrainingAlgorithm joinTrainingInfo(ScannedModel &model, const ImportOptions &options) {
  TrainingAlgorithm result;
  if (model.proto.training_info_size() == 0)
    return result;
  if (model.proto.training_info_size() > 1)
    throw Failure("the model has " + std::to_string(model.proto.training_info_size()) +
                  " training algorithms (training_info); a plan has one");
  if (!options.trainable.empty() || !options.frozen.empty())
    throw Failure("--trainable and --frozen have no meaning for a model whose training_info says what it updates");
  const onnx::TrainingInfoProto &info = model.proto.training_info(0);
  onnx::GraphProto &graph = *model.proto.mutable_graph();
  checkOrder(graph, info.algorithm());
  for (const onnx::NodeProto &node : graph.node())
    result.readForward.insert(node.input().begin(), node.input().end());
  append(graph, model.data, info.algorithm());
  result.present = true;
  result.updates = readBinding(info.update_binding(), "update_binding");
  if (result.updates.empty())
    throw Failure("the model's training_info updates nothing: its update_binding is empty");

  std::map<std::string, int> initializers;
  for (int i = 0; i < graph.initializer_size(); ++i)
    initializers.emplace(graph.initializer(i).name(), i);
  auto initializer = [&](const std::string &key, const std::string &field) {
    auto found = initializers.find(key);
    if (found == initializers.end())
      throw Failure("training_info: " + field + " gives a value to '" + key +
                    "', which is no initializer of the graph or the algorithm");
    return found->second;
  };
  const Names outputs = outputNames(graph);
  for (const auto &[key, value] : result.updates) {
    initializer(key, "update_binding");
    if (!outputs.count(value))
      throw Failure("training_info: update_binding gives '" + key + "' the value '" + value +
                    "', which is no output of the graph or the algorithm");
  }
  const Initialization initialization(info.initialization());
  const Names made = outputNames(info.initialization());
  for (const auto &[key, value] : readBinding(info.initialization_binding(), "initialization_binding")) {
    const int i = initializer(key, "initialization_binding");
    if (!made.count(value))
      throw Failure("training_info: initialization_binding gives '" + key + "' the value '" + value +
                    "', which is no output of the initialization");
    initialization.bind(*graph.mutable_initializer(i), model.data[size_t(i)], value, result.drawn);
  }
  return result;
}

} // namespace ds::import
