//===- Roles.h - what an initializer is for, by its use -----------------------===//
#pragma once

#include "compiler/import/Flatten.h"
#include "compiler/import/Weights.h"
#include "compiler/import/files/WireScan.h"
#include "core/Shape.h"

#include <map>
#include <span>
#include <string>

namespace ds::import {

/// What the first op is that computes with an initializer and data, and whether such operands are learned.
struct Role {
  bool learned = false;
  /// One number throughout, and read by several nodes, while no factor of a product is: perhaps equal ones were merged.
  bool maybeMerged = false;
  std::string use; ///< "factor of node 'fc' (MatMul, opset 13)"
};

/// The roles of float initializers, for files that do not say which are parameters. What is multiplied with data,
/// convolved, looked up, or added to activations is learned; what an operator wants constant (scales, pads, bounds,
/// class weights, running statistics), masks, tables of sines, and what data are normalized with are not. Through ops
/// on initializers alone, as a transpose or a weight norm, a role goes to all that they read. `namedByModule` says that
/// initializers are the parameters and buffers of a PyTorch module, since its exporter writes other constants as nodes;
/// `constantsLearn` that weights are Constant nodes (liftConstants), which elsewhere are masks and tables.
std::map<std::string, Role> rolesOf(const ScannedModel &model, const FlatGraph &graph, WeightFiles &files,
                                    bool namedByModule, bool constantsLearn);

/// Whether rows are sines and cosines of the same angles, of which no module learns any: their squares add up to half
/// their number.
bool isTableOfSines(const Shape &shape, std::span<const float> values);

} // namespace ds::import
