//===- AttachedLoss.h - from logits to a scalar ---------------------------------===//
#pragma once

#include "compiler/import/GraphImporter.h"

#include <string>
#include <utility>
#include <vector>

namespace ds::import {

/// Why logits of a shape have no loss of the kind; empty: they have.
std::string unfitness(LossKind kind, const Shape &logits);

/// Of the labels: one class per row of logits, or as many numbers as there are logits.
Shape labelShape(LossKind kind, const Shape &logits);

/// The dimension of the classes, of logits that choose one.
size_t classDimension(LossKind kind, const Shape &logits);

/// What transformers' loss function of the kind computes, by the ops to which the same loss in a graph is imported.
/// Label smoothing and weights of classes are those of torch.nn.functional.cross_entropy.
Value attachedLoss(GraphImporter &graph, const AttachedLoss &loss, const Value &logits, const Value &labels,
                   mlir::Location location);

/// Scalars by name, each times its weight, added in order.
Value weightedSum(GraphImporter &graph, const std::vector<std::pair<std::string, double>> &terms,
                  mlir::Location location);

} // namespace ds::import
