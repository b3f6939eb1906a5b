//===- TransposedCopies.cpp - heads that are tied to an embedding ---------===//
#include "compiler/import/MatchWeights.h"

#include "compiler/import/match/RestoredNodes.h"
#include "compiler/import/match/WeightForms.h"

#include <algorithm>
#include <map>

namespace ds::import {
namespace {

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

} // namespace ds::import
