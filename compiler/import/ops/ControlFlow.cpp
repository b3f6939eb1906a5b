//===- ControlFlow.cpp - If, Loop and Scan, resolved while importing ------------------------------===//
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

namespace ds::import::ops {
namespace {

/// Input i, one bool or integer that must be known, or `otherwise` where it is absent.
int64_t knownScalar(Node &node, size_t i, int64_t otherwise, const char *what, const char *wayOut) {
  if (!node.has(i))
    return otherwise;
  const std::optional<Constant> constant = node.graph().resolve(node.in(i));
  if (!constant)
    throw Failure("control flow: the " + std::string(what) + " ('" + node.proto().input(int(i)) +
                  "') depends on what the model is fed or trains, and a plan is static; " + wayOut);
  if (constant->elements() != 1 || ds::isFloat(constant->dtype()))
    throw Failure("the " + std::string(what) + " must be one bool or integer, not " +
                  std::string(ds::name(constant->dtype())) + " " + toString(constant->shape()));
  return constant->toIntegers()[0];
}

constexpr const char *fixedCount = "give the loop a fixed number of iterations, or use operators on whole tensors with "
                                   "a mask (torch.where)";

/// What each iteration gave, as one tensor with a new dimension.
Value stack(Node &node, const std::vector<Value> &slices, int64_t axis, bool reversed) {
  if (slices.empty())
    throw Failure("no iteration runs, so that the shape of what they would give is not known");
  std::vector<Value> rows;
  const size_t at = Node::axis(axis, slices[0].rank() + 1);
  for (const Value &slice : slices) {
    if (slice.kind == Value::Kind::Sequence || slice.shape != slices[0].shape || slice.dtype != slices[0].dtype)
      throw Failure("the iterations give values of several shapes or types, which cannot be stacked");
    Shape shape = slice.shape;
    shape.insert(shape.begin() + int64_t(at), 1);
    rows.push_back(reshape(node, slice, shape));
  }
  if (reversed)
    std::reverse(rows.begin(), rows.end());
  return join(node, rows, at);
}

void expectOutputs(const onnx::GraphProto &body, size_t least) {
  if (size_t(body.output_size()) < least)
    throw Failure("the body has " + std::to_string(body.output_size()) + " outputs and needs at least " +
                  std::to_string(least));
}

} // namespace

/// The branch that is taken becomes part of the graph.
void ifElse(Node &node) {
  (void)node.anyIn(0);
  const bool condition =
      knownScalar(node, 0, 1, "condition",
                  "compute both branches and choose by torch.where, or export the branch that training takes") != 0;
  const onnx::GraphProto &branch = node.bodyAttr(condition ? "then_branch" : "else_branch");
  std::vector<Value> results = node.run(branch, {});
  if (results.size() != node.outputs())
    throw Failure("the branch has " + std::to_string(results.size()) + " outputs, the node " +
                  std::to_string(node.outputs()));
  for (size_t i = 0; i < results.size(); ++i)
    node.set(i, std::move(results[i]));
}

/// Inputs: how often at most, whether at all, the first values of what iterations hand on. Outputs: the last values,
/// then what all iterations gave, stacked.
void loop(Node &node) {
  const onnx::GraphProto &body = node.bodyAttr("body");
  constexpr int64_t endless = std::numeric_limits<int64_t>::max();
  const int64_t count = knownScalar(node, 0, endless, "number of iterations", fixedCount);
  bool goesOn = count <= 0 || knownScalar(node, 1, 1, "condition", fixedCount) != 0;
  std::vector<Value> carried;
  for (size_t i = 2; i < node.inputs(); ++i)
    carried.push_back(node.anyIn(i));
  expectOutputs(body, 1 + carried.size());
  std::vector<std::vector<Value>> given(size_t(body.output_size()) - 1 - carried.size());
  for (int64_t i = 0; i < count && goesOn; ++i) {
    std::vector<Value> inputs{Value::of(Constant::integer(i)), Value::of(Constant::scalar(DType::Bool, uint8_t(1)))};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const std::vector<Value> results = node.run(body, std::move(inputs));
    for (size_t k = 0; k < carried.size(); ++k)
      carried[k] = results[1 + k];
    for (size_t k = 0; k < given.size(); ++k)
      given[k].push_back(results[1 + carried.size() + k]);
    if (i + 1 == count)
      break; // the last condition decides nothing
    const std::optional<Constant> next = node.graph().resolve(results[0]);
    if (!next || next->elements() != 1)
      throw Failure("control flow: whether iteration " + std::to_string(i + 1) +
                    " runs depends on what the model is fed or trains, and a plan is static; " + fixedCount);
    goesOn = next->toIntegers()[0] != 0;
  }
  for (size_t k = 0; k < carried.size(); ++k)
    node.set(k, carried[k]);
  for (size_t k = 0; k < given.size(); ++k)
    if (node.wants(carried.size() + k))
      node.set(carried.size() + k, stack(node, given[k], 0, false));
}

namespace {

/// An entry for each of `count` scanned values, or `otherwise`.
std::vector<int64_t> scanList(Node &node, const char *name, size_t count) {
  std::vector<int64_t> list = node.integersAttr(name).value_or(std::vector<int64_t>(count, 0));
  if (list.size() != count)
    throw Failure("'" + std::string(name) + "' has " + std::to_string(list.size()) + " entries where " +
                  std::to_string(count) + " are needed");
  return list;
}

/// The values that a Scan takes apart.
struct Scanned {
  std::vector<Value> values;
  std::vector<size_t> axes;
  std::vector<int64_t> backwards;
  int64_t length = 0;

  Value at(Node &node, size_t k, int64_t iteration) const {
    Shape shape = values[k].shape;
    shape.erase(shape.begin() + int64_t(axes[k]));
    const int64_t index = backwards[k] ? length - 1 - iteration : iteration;
    return reshape(node, sliceAlong(node, values[k], axes[k], index, 1), shape);
  }
};

Scanned scannedInputs(Node &node, size_t states, size_t count) {
  Scanned scanned;
  scanned.backwards = scanList(node, "scan_input_directions", count);
  const std::vector<int64_t> axes = scanList(node, "scan_input_axes", count);
  for (size_t k = 0; k < count; ++k) {
    const Value &value = node.in(states + k);
    scanned.axes.push_back(Node::axis(axes[k], value.rank()));
    const int64_t length = value.shape[scanned.axes[k]];
    if (k > 0 && length != scanned.length)
      throw Failure("the scanned inputs have the lengths " + std::to_string(scanned.length) + " and " +
                    std::to_string(length));
    scanned.length = length;
    scanned.values.push_back(value);
  }
  return scanned;
}

} // namespace

/// Inputs: first states, then tensors that iterations take apart. Outputs: last states, then what they gave, stacked.
void scan(Node &node) {
  const onnx::GraphProto &body = node.bodyAttr("body");
  const int64_t count = node.integerAttr("num_scan_inputs", 0);
  if (count < 1 || size_t(count) > node.inputs())
    throw Failure("num_scan_inputs is " + std::to_string(count) + " of " + std::to_string(node.inputs()) + " inputs");
  const size_t states = node.inputs() - size_t(count);
  std::vector<Value> carried;
  for (size_t i = 0; i < states; ++i)
    carried.push_back(node.anyIn(i));
  const Scanned scanned = scannedInputs(node, states, size_t(count));
  expectOutputs(body, states);
  std::vector<std::vector<Value>> given(size_t(body.output_size()) - states);
  for (int64_t i = 0; i < scanned.length; ++i) {
    std::vector<Value> inputs = carried;
    for (size_t k = 0; k < scanned.values.size(); ++k)
      inputs.push_back(scanned.at(node, k, i));
    const std::vector<Value> results = node.run(body, std::move(inputs));
    std::copy_n(results.begin(), states, carried.begin());
    for (size_t k = 0; k < given.size(); ++k)
      given[k].push_back(results[states + k]);
  }
  for (size_t k = 0; k < states; ++k)
    node.set(k, carried[k]);
  const std::vector<int64_t> axes = scanList(node, "scan_output_axes", given.size());
  const std::vector<int64_t> backwards = scanList(node, "scan_output_directions", given.size());
  for (size_t k = 0; k < given.size(); ++k)
    if (node.wants(states + k))
      node.set(states + k, stack(node, given[k], axes[k], backwards[k] != 0));
}

} // namespace ds::import::ops
