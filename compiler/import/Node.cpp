//===- Node.cpp - one node, as the builder of its op sees it --------------------===//
#include "compiler/import/Node.h"

#include <charconv>
#include <cmath>
#include <set>

using namespace mlir;

namespace ds::import {

/// Whether an operator computes nothing with elements of 16 bits, so that they stay as they are, or converts them
/// itself.
static bool movesOnly(const std::string &op) {
  static const std::set<std::string> ops = {"Bernoulli",
                                            "Cast",
                                            "CastLike",
                                            "Concat",
                                            "ConcatFromSequence",
                                            "Expand",
                                            "Flatten",
                                            "Identity",
                                            "If",
                                            "Loop",
                                            "RandomNormalLike",
                                            "RandomUniformLike",
                                            "Reshape",
                                            "Scan",
                                            "SequenceConstruct",
                                            "SequenceInsert",
                                            "SequenceMap",
                                            "Shape",
                                            "Size",
                                            "Slice",
                                            "Split",
                                            "SplitToSequence",
                                            "Squeeze",
                                            "Tile",
                                            "Transpose",
                                            "Unsqueeze"};
  return ops.count(op) != 0;
}

Node::Node(GraphImporter &graph, const FlatNode &node, Location location)
    : graph_(graph), node_(node), location_(location), set_(size_t(node.proto->output_size()), false) {
  if (has(0) && !movesOnly(op()) && !isTrainingDomain(node.proto->domain()))
    if (const Value &first = graph.lookup(node.proto->input(0));
        first.kind != Value::Kind::Sequence && ds::isNarrowFloat(first.dtype))
      narrow_ = first.dtype;
  std::set<std::string> names;
  for (const onnx::AttributeProto &attribute : node.proto->attribute())
    if (!names.insert(attribute.name()).second)
      throw Failure("attribute '" + attribute.name() + "' is there twice");
}

//===-- inputs ----------------------------------------------------------------===//

const Value &Node::anyIn(size_t i) {
  if (!has(i))
    throw Failure("input " + std::to_string(i) + " is missing");
  const Value &value = graph_.lookup(node_.proto->input(int(i)));
  if (!narrow_ || value.kind == Value::Kind::Sequence || !ds::isNarrowFloat(value.dtype))
    return value;
  auto found = widened_.find(i);
  return found != widened_.end() ? found->second : widened_.emplace(i, cast(value, DType::F32)).first->second;
}

const Value &Node::in(size_t i) {
  const Value &value = anyIn(i);
  if (value.kind == Value::Kind::Sequence)
    throw Failure("input " + std::to_string(i) + " is a sequence where a tensor is needed");
  return value;
}

const Value &Node::floatIn(size_t i) {
  const Value &value = in(i);
  if (!ds::isFloat(value.dtype))
    throw Failure("input " + std::to_string(i) + " is " + std::string(ds::name(value.dtype)) + " and must be a float");
  return value;
}

Constant Node::known(size_t i, const std::string &what) {
  if (std::optional<Constant> constant = graph_.resolve(in(i)))
    return *constant;
  const std::string &name = node_.proto->input(int(i));
  const Value &value = in(i);
  throw Failure("the " + what + " ('" + name + "') " +
                (value.kind == Value::Kind::Variable && value.variable->trainable
                     ? "are an initializer that is trained; --frozen '" + name + "' makes it a constant"
                     : "depend on what the model is fed or trains; they must follow from shapes and constants"));
}

std::vector<int64_t> Node::integers(size_t i, const std::string &what) {
  const Constant constant = known(i, what);
  if (ds::isFloat(constant.dtype()))
    throw Failure("the " + what + " are not integers");
  return constant.toIntegers();
}

int64_t Node::integer(size_t i, const std::string &what) {
  const std::vector<int64_t> values = integers(i, what);
  if (values.size() != 1)
    throw Failure("the " + what + " must be one integer, not " + std::to_string(values.size()));
  return values[0];
}

//===-- attributes ------------------------------------------------------------===//

/// Files older than IR version 2 leave the type out: it follows from the one field that is set.
static int typeOf(const onnx::AttributeProto &attribute) {
  if (attribute.type() != 0)
    return attribute.type();
  return attribute.has_f()              ? 1
         : attribute.has_i()            ? 2
         : attribute.has_s()            ? 3
         : attribute.has_t()            ? 4
         : attribute.has_g()            ? 5
         : attribute.floats_size() > 0  ? 6
         : attribute.ints_size() > 0    ? 7
         : attribute.strings_size() > 0 ? 8
                                        : 0;
}

const onnx::AttributeProto *Node::attribute(const std::string &name, int type) {
  for (const onnx::AttributeProto &attribute : node_.proto->attribute()) {
    if (attribute.name() != name)
      continue;
    // A list without elements leaves no field behind to tell its type.
    if (const int actual = typeOf(attribute); actual != type && !(actual == 0 && type >= 6))
      throw Failure("attribute '" + name + "' has the wrong type");
    return &attribute;
  }
  return nullptr;
}

int64_t Node::integerAttr(const std::string &name, int64_t otherwise) {
  const onnx::AttributeProto *found = attribute(name, 2);
  return found ? found->i() : otherwise;
}

double shortestDecimal(float value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  double result = double(value);
  if (std::isfinite(value) && error == std::errc())
    (void)std::from_chars(text, end, result);
  return result;
}

std::string text(double value) {
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

double Node::floatAttr(const std::string &name, double otherwise) {
  const onnx::AttributeProto *found = attribute(name, 1);
  return found ? shortestDecimal(found->f()) : otherwise;
}

std::string Node::stringAttr(const std::string &name, const std::string &otherwise) {
  const onnx::AttributeProto *found = attribute(name, 3);
  return found ? found->s() : otherwise;
}

std::optional<std::vector<int64_t>> Node::integersAttr(const std::string &name) {
  const onnx::AttributeProto *found = attribute(name, 7);
  if (!found)
    return std::nullopt;
  return std::vector<int64_t>(found->ints().begin(), found->ints().end());
}

std::vector<std::string> Node::stringsAttr(const std::string &name) {
  const onnx::AttributeProto *found = attribute(name, 8);
  return found ? std::vector<std::string>(found->strings().begin(), found->strings().end())
               : std::vector<std::string>();
}

const onnx::GraphProto &Node::bodyAttr(const std::string &name) {
  if (const onnx::AttributeProto *found = attribute(name, 5))
    return found->g();
  throw Failure("the body '" + name + "' is missing");
}

size_t Node::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    throw Failure("axis " + std::to_string(axis) + " is outside a tensor of rank " + std::to_string(rank));
  return size_t(axis < 0 ? axis + rank : axis);
}

size_t Node::axisAttr(const std::string &name, int64_t otherwise, int64_t rank) {
  return axis(integerAttr(name, otherwise), rank);
}

std::vector<int64_t> Node::axes(const std::vector<int64_t> &axes, int64_t rank) {
  std::set<int64_t> sorted;
  for (int64_t each : axes)
    if (!sorted.insert(int64_t(axis(each, rank))).second)
      throw Failure("axis " + std::to_string(each) + " is listed twice");
  return {sorted.begin(), sorted.end()};
}

//===-- building --------------------------------------------------------------===//

Value Node::cast(const Value &input, DType to) {
  if (input.dtype == to)
    return input;
  if (const std::optional<Constant> constant = graph_.known(input))
    return Value::of(foldCast(*constant, to, budget()));
  const auto type = TypeAttr::get(elementType(builder().getContext(), to));
  return Value::of(create<train::CastOp>({operand(input)}, {builder().getNamedAttr("element_type", type)}).getResult());
}

//===-- outputs ---------------------------------------------------------------===//

/// Outputs after the first whose type does not follow from input 0: float32 already.
bool Node::isStatistic(size_t i) const {
  const bool keepsState = op() == "LinearAttention" && has(3) && graph_.lookup(proto().input(3)).dtype == DType::F32;
  return i > 0 && (op() == "LayerNormalization" || op() == "BatchNormalization" || keepsState);
}

void Node::set(size_t i, Value value) {
  if (!wants(i))
    return;
  if (narrow_ && value.kind != Value::Kind::Sequence && value.dtype == DType::F32 && !isStatistic(i))
    value = cast(value, *narrow_);
  if (value.kind != Value::Kind::Sequence)
    checkedElements(value.shape, value.dtype, "output '" + node_.proto->output(int(i)) + "'");
  const std::string &name = node_.proto->output(int(i));
  graph_.define(name, graph_.atName(name, std::move(value), location_));
  set_[i] = true;
}

void Node::finish() {
  for (size_t i = 0; i < outputs(); ++i)
    if (wants(i) && !set_[i])
      throw Failure("output " + std::to_string(i) + " ('" + node_.proto->output(int(i)) +
                    "') is not supported for training");
  for (size_t i = asked_; i < inputs(); ++i)
    if (has(i))
      throw Failure("input " + std::to_string(i) + " ('" + node_.proto->input(int(i)) + "') is one that " + op() +
                    " does not have");
}

void Node::checkResults(Operation *op) {
  for (mlir::Value result : op->getResults()) {
    const Value value = Value::of(result);
    checkedElements(value.shape, value.dtype, "the result");
  }
}

} // namespace ds::import
