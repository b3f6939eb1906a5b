//===- Reductions.cpp - sums, means, extremes -------------------------------------------------===//
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

#include <numeric>

namespace ds::import::ops {

/// Axes are an attribute before the given opset, an input from it on; none means all, or none at all if the node says
/// so.
static void reduceOp(Node &node, ReduceFold kind, int64_t axesInputSince) {
  const Value input = node.in(0);
  std::vector<int64_t> list;
  if (node.opset() < axesInputSince)
    list = node.integersAttr("axes").value_or(list);
  else if (node.has(1))
    list = node.integers(1, "axes");
  std::vector<int64_t> axes = Node::axes(list, input.rank());
  if (axes.empty() && (node.opset() < axesInputSince || node.integerAttr("noop_with_empty_axes", 0) == 0)) {
    axes.resize(input.shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  node.set(0, reduce(node, kind, input, axes, node.integerAttr("keepdims", 1) != 0));
}

void reduceSum(Node &node) { reduceOp(node, ReduceFold::Sum, 13); }
void reduceMean(Node &node) { reduceOp(node, ReduceFold::Mean, 18); }
void reduceMax(Node &node) { reduceOp(node, ReduceFold::Max, 18); }
void reduceMin(Node &node) { reduceOp(node, ReduceFold::Min, 18); }
void reduceProd(Node &node) { reduceOp(node, ReduceFold::Prod, 18); }

} // namespace ds::import::ops
