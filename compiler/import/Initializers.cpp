//===- Initializers.cpp - tensors of a file that are initializers by right ----===//
#include "compiler/import/Initializers.h"

#include "compiler/import/Types.h"
#include "compiler/import/match/RestoredNodes.h"
#include "compiler/import/match/WeightForms.h"

#include <algorithm>
#include <map>
#include <regex>

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

/// A matrix of float32.
Elements elementsOf(const ScannedModel &model, WeightFiles &files, int number) {
  const onnx::TensorProto &tensor = model.proto.graph().initializer(number);
  const TensorData data =
      files.locate(tensor, model.data[size_t(number)], DType::F32, "initializer '" + tensor.name() + "'");
  return {DType::F32, {tensor.dims().begin(), tensor.dims().end()}, files.read(data, DType::F32)};
}

} // namespace

std::set<std::string> joinTransposedCopies(const ScannedModel &model, FlatGraph &graph, WeightFiles &files) {
  std::map<std::string, int> matrices;
  for (int i = 0; i < model.proto.graph().initializer_size(); ++i)
    if (const onnx::TensorProto &tensor = model.proto.graph().initializer(i);
        tensor.data_type() == 1 && tensor.dims_size() == 2 && tensor.dims(0) > 1 && tensor.dims(1) > 1)
      matrices[tensor.name()] = i;
  std::set<std::string> tables, joined;
  for (const FlatNode &node : graph.nodes)
    if (node.proto->op_type() == "Gather" && node.proto->input_size() > 0 && matrices.count(node.proto->input(0)))
      tables.insert(node.proto->input(0));
  RestoredNodes nodes(graph);
  for (FlatNode &node : graph.nodes)
    for (int i = 0; i < node.proto->input_size() && node.proto->op_type() == "MatMul"; ++i) {
      const auto copy = matrices.find(node.proto->input(i));
      for (const std::string &table : tables) {
        const auto &dims = model.proto.graph().initializer(matrices.at(table)).dims();
        if (copy == matrices.end() || copy->first == table ||
            !std::ranges::equal(dims, Shape{model.proto.graph().initializer(copy->second).dims(1),
                                            model.proto.graph().initializer(copy->second).dims(0)}))
          continue;
        const Elements folded = elementsOf(model, files, copy->second);
        const std::optional<Match> match = compare(folded, elementsOf(model, files, matrices.at(table)), table);
        if (!match || match->form != Form::Transposed)
          continue;
        nodes.setInput(node, i, nodes.valueOf(*match, folded.shape));
        joined.insert(table);
        break;
      }
    }
  nodes.insert();
  return joined;
}

void liftConstants(ScannedModel &model, FlatGraph &graph) {
  std::erase_if(graph.nodes, [&](const FlatNode &node) {
    const onnx::TensorProto *floats = floatsOf(*node.proto);
    if (!floats)
      return false;
    onnx::TensorProto &tensor = *model.proto.mutable_graph()->add_initializer();
    tensor = *floats;
    tensor.set_name(node.proto->output(0));
    model.data.emplace_back();
    model.constants.insert(tensor.name());
    return true;
  });
}

std::set<std::string> separateMerged(ScannedModel &model, FlatGraph &graph, const Metadata &metadata) {
  std::set<std::string> separated, outputs;
  if (!metadata.fromPyTorch)
    return separated;
  static const std::regex ofModule("[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z0-9_]+)*|onnx::[A-Za-z]+_[0-9]+");
  onnx::GraphProto &proto = *model.proto.mutable_graph();
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
    separated.insert(name);
    model.merged.insert(name);
    return true;
  });
  return separated;
}

} // namespace ds::import
