//===- Initializers.cpp - tensors of a file that are initializers by right ----===//
#include "compiler/import/Initializers.h"

#include <map>
#include <regex>
#include <set>
#include <string>

namespace ds::import {
namespace {

/// The floats of a Constant node, or null.
const onnx::TensorProto *floatsOf(const onnx::NodeProto &node) {
  if (node.op_type() != "Constant" || !(node.domain().empty() || node.domain() == "ai.onnx") ||
      node.output_size() != 1 || node.attribute_size() != 1 || node.attribute(0).name() != "value" ||
      !node.attribute(0).has_t())
    return nullptr;
  const onnx::TensorProto &tensor = node.attribute(0).t();
  return tensor.data_type() == 1 || tensor.data_type() == 11 ? &tensor : nullptr; // FLOAT, DOUBLE
}

void addInitializer(ScannedModel &model, const onnx::TensorProto &floats, const std::string &name) {
  onnx::TensorProto &tensor = *model.proto.mutable_graph()->add_initializer();
  tensor = floats;
  tensor.set_name(name);
  model.data.emplace_back();
}

/// Calls visit(body) for the bodies of control flow in a graph, at any depth.
template <typename Visit> void forEachBody(onnx::GraphProto &graph, const Visit &visit) {
  for (onnx::NodeProto &node : *graph.mutable_node())
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      if (attribute.has_g()) {
        visit(*attribute.mutable_g());
        forEachBody(*attribute.mutable_g(), visit);
      }
}

/// How often a name stands for something in the graph and its bodies.
std::map<std::string, int> countNames(onnx::GraphProto &graph) {
  std::map<std::string, int> counts;
  const auto count = [&](onnx::GraphProto &each) {
    for (const onnx::ValueInfoProto &input : each.input())
      ++counts[input.name()];
    for (const onnx::TensorProto &tensor : each.initializer())
      ++counts[tensor.name()];
    for (const onnx::NodeProto &node : each.node())
      for (const std::string &output : node.output())
        ++counts[output];
  };
  count(graph);
  forEachBody(graph, count);
  return counts;
}

} // namespace

bool hasWeightsInConstants(const ScannedModel &model, const Metadata &metadata) {
  if (metadata.fromPyTorch)
    return false;
  for (const onnx::TensorProto &tensor : model.proto.graph().initializer())
    if ((tensor.data_type() == 1 || tensor.data_type() == 11) && tensor.dims_size() > 0 &&
        !model.constants.contains(tensor.name()))
      return false;
  return true;
}

void liftFromBodies(ScannedModel &model, bool constantsLearn) {
  const std::map<std::string, int> counts = countNames(*model.proto.mutable_graph());
  forEachBody(*model.proto.mutable_graph(), [&](onnx::GraphProto &body) {
    auto &tensors = *body.mutable_initializer();
    for (int i = tensors.size() - 1; i >= 0; --i)
      if (const int type = tensors[i].data_type(); (type == 1 || type == 11) && counts.at(tensors[i].name()) == 1) {
        addInitializer(model, tensors[i], tensors[i].name());
        model.ofBodies.insert(tensors[i].name());
        tensors.DeleteSubrange(i, 1);
      }
    auto &nodes = *body.mutable_node();
    for (int i = nodes.size() - 1; constantsLearn && i >= 0; --i)
      if (const onnx::TensorProto *floats = floatsOf(nodes[i]); floats && counts.at(nodes[i].output(0)) == 1) {
        addInitializer(model, *floats, nodes[i].output(0));
        model.constants.insert(nodes[i].output(0));
        nodes.DeleteSubrange(i, 1);
      }
  });
}

void liftConstants(ScannedModel &model, FlatGraph &graph, const JoinedLoss &loss) {
  std::erase_if(graph.nodes, [&](const FlatNode &node) {
    const onnx::TensorProto *floats = floatsOf(*node.proto);
    if (!floats || loss.has(node.proto->name()))
      return false;
    addInitializer(model, *floats, node.proto->output(0));
    model.constants.insert(node.proto->output(0));
    return true;
  });
}

void separateMerged(ScannedModel &model, FlatGraph &graph, const Metadata &metadata) {
  if (!metadata.fromPyTorch)
    return;
  static const std::regex ofModule("[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z0-9_]+)*|onnx::[A-Za-z]+_[0-9]+");
  onnx::GraphProto &proto = *model.proto.mutable_graph();
  std::set<std::string> outputs;
  std::map<std::string, int> floats; // number of an initializer
  for (int i = 0; i < proto.initializer_size(); ++i)
    if (const int type = proto.initializer(i).data_type(); type == 1 || type == 11)
      floats[proto.initializer(i).name()] = i;
  for (const onnx::ValueInfoProto &output : proto.output())
    outputs.insert(output.name());
  std::erase_if(graph.nodes, [&](const FlatNode &node) {
    if (node.proto->op_type() != "Identity" || node.proto->input_size() != 1 || node.proto->output_size() != 1)
      return false;
    const std::string &name = node.proto->output(0);
    const auto twin = floats.find(node.proto->input(0));
    if (twin == floats.end() || outputs.count(name) || name.size() > 1000 || !std::regex_match(name, ofModule))
      return false;
    const int number = twin->second;
    onnx::TensorProto &tensor = *proto.add_initializer();
    tensor = proto.initializer(number);
    tensor.set_name(name);
    model.data.push_back(model.data[size_t(number)]);
    floats[name] = proto.initializer_size() - 1;
    model.merged.insert(name);
    return true;
  });
}

} // namespace ds::import
