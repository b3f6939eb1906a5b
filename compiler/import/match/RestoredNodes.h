//===- RestoredNodes.h - nodes that make of parameters what a model reads -----===//
#pragma once

#include "compiler/import/Flatten.h"
#include "compiler/import/match/WeightForms.h"

#include <set>
#include <string>
#include <vector>

namespace ds::import {

/// What an exporter computed from parameters is computed by nodes again; each value is made once.
class RestoredNodes {
public:
  explicit RestoredNodes(FlatGraph &graph) : graph_(graph) {}

  /// The parameter in the form, of a shape, that a node reads: itself or a value of a node of ours.
  std::string valueOf(const Match &match, const Shape &shape);
  /// The node reads another value; the file's own node stays as it is.
  void setInput(FlatNode &node, int i, const std::string &name);
  void addInput(FlatNode &node, const std::string &name);
  /// Puts all of them before the graph's own.
  void insert();

private:
  std::string plusOne(const std::string &parameter);
  std::string gathered(const Match &match, const Shape &shape);
  std::string inShape(const std::string &value, const Shape &shape, bool repeats);
  std::string made(const char *op, const std::string &input, const std::string &output, int64_t opset,
                   onnx::NodeProto node = {});

  FlatGraph &graph_;
  std::set<std::string> outputs_;
  std::vector<FlatNode> made_;
};

} // namespace ds::import
