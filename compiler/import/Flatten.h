//===- Flatten.h - one list of nodes, functions inlined ------------------------===//
#pragma once

#include "compiler/import/files/onnx.pb.h"

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

namespace ds::import {

/// The opsets that the operators' versions are read from; outside, refused by name.
constexpr int64_t oldestOpset = 1, newestOpset = 27;

struct FlatNode {
  const onnx::NodeProto *proto = nullptr;
  int64_t opset = 0; // of the node's domain
  /// How many of the last inputs are no operands: values around an If, Loop or Scan that its bodies read.
  int captured = 0;
};

/// Whether the node is ONNX's Gradient.
bool isGradient(const onnx::NodeProto &node);
/// Whether the domain is that of Gradient, Adam, Adagrad and Momentum.
bool isTrainingDomain(const std::string &domain);

/// The nodes of a graph in order, calls of functions replaced by their bodies.
struct FlatGraph {
  std::vector<FlatNode> nodes;
  std::deque<onnx::NodeProto> inlined; // owns what functions were instantiated to
  /// What Gradient nodes differentiate by or hold fixed. The nodes themselves have their y as one more input.
  std::set<std::string> differentiated;
  std::set<std::string> gradientTargets; // the ys
};

/// Throws Failure on opsets that do not exist, on functions that call themselves and where inlining makes more
/// than a million nodes.
FlatGraph flatten(const onnx::ModelProto &model);

/// The nodes of a control-flow node's body. Values that the body makes get `prefix` before their names; those around it
/// keep theirs.
FlatGraph flattenBody(const onnx::ModelProto &model, const onnx::GraphProto &body, int64_t opset,
                      const std::string &prefix);

/// Throws Failure where a name of a node or a value is not UTF-8.
void checkNames(const FlatGraph &graph);

/// Checks the model's structure: a graph is there, nothing of it is of a kind that training does not know, every value
/// is made once and before its use, outputs exist. Returns the names that only `outside`, a weight file, defines.
std::set<std::string> validate(const onnx::ModelProto &model, const FlatGraph &graph,
                               const std::set<std::string> &outside);

/// "node 'h.0/attn/MatMul_3' (MatMul, opset 20)", by its first output where it has no name.
std::string describe(const FlatNode &node);

} // namespace ds::import
