//===- Sequences.cpp - lists of tensors, which exist while importing only -----------------------------===//
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

namespace ds::import::ops {

constexpr size_t maxElements = 4096;

static const std::vector<Value> &elementsIn(Node &node, size_t i) {
  const Value &list = node.anyIn(i);
  if (list.kind != Value::Kind::Sequence)
    throw Failure("input " + std::to_string(i) + " is no sequence");
  return list.elements;
}

/// The place that input i names among `count` elements, counted from their end where negative; at most `last`.
static size_t placeIn(Node &node, size_t i, size_t count, size_t last) {
  const int64_t place = node.integer(i, "position"), size = int64_t(count);
  if (place < -size || place > int64_t(last))
    throw Failure("position " + std::to_string(place) + " is outside a sequence of " + std::to_string(size));
  return size_t(place < 0 ? place + size : place);
}

/// Those of a sequence that may not be empty.
static const std::vector<Value> &someIn(Node &node, size_t i) {
  const std::vector<Value> &elements = elementsIn(node, i);
  if (elements.empty())
    throw Failure("the sequence is empty");
  return elements;
}

void sequenceConstruct(Node &node) {
  std::vector<Value> elements;
  for (size_t i = 0; i < node.inputs(); ++i)
    elements.push_back(node.in(i));
  node.set(0, Value::sequence(std::move(elements)));
}

void sequenceEmpty(Node &node) { node.set(0, Value::sequence({})); }

void sequenceLength(Node &node) { node.set(0, Value::of(Constant::integer(int64_t(elementsIn(node, 0).size())))); }

void sequenceAt(Node &node) {
  const std::vector<Value> &elements = someIn(node, 0);
  node.set(0, elements[placeIn(node, 1, elements.size(), elements.size() - 1)]);
}

/// Before the place, or at the end.
void sequenceInsert(Node &node) {
  std::vector<Value> elements = elementsIn(node, 0);
  if (elements.size() >= maxElements)
    throw Failure("a sequence of more than " + std::to_string(maxElements) + " tensors is not supported");
  const Value element = node.in(1);
  const size_t place = node.has(2) ? placeIn(node, 2, elements.size(), elements.size()) : elements.size();
  elements.insert(elements.begin() + int64_t(place), element);
  node.set(0, Value::sequence(std::move(elements)));
}

void sequenceErase(Node &node) {
  std::vector<Value> elements = someIn(node, 0);
  const size_t last = elements.size() - 1;
  elements.erase(elements.begin() + int64_t(node.has(1) ? placeIn(node, 1, elements.size(), last) : last));
  node.set(0, Value::sequence(std::move(elements)));
}

/// PyTorch's cat, or with new_axis=1 its stack.
void concatFromSequence(Node &node) {
  std::vector<Value> elements = someIn(node, 0);
  const bool isNew = node.integerAttr("new_axis", 0) != 0;
  const size_t axis = node.axisAttr("axis", 0, elements[0].rank() + (isNew ? 1 : 0));
  for (Value &element : elements)
    if (isNew) {
      Shape shape = element.shape;
      if (shape.size() < axis)
        throw Failure("the sequence holds tensors of several ranks");
      shape.insert(shape.begin() + int64_t(axis), 1);
      element = reshape(node, element, shape);
    }
  node.set(0, join(node, elements, axis));
}

/// The body once for each element of the first sequence; other sequences go along, tensors stay.
void sequenceMap(Node &node) {
  const onnx::GraphProto &body = node.bodyAttr("body");
  const size_t count = elementsIn(node, 0).size();
  std::vector<std::vector<Value>> outputs(size_t(body.output_size()));
  for (size_t i = 0; i < count; ++i) {
    std::vector<Value> inputs;
    for (size_t k = 0; k < node.inputs(); ++k) {
      const Value &value = node.anyIn(k);
      const bool isList = value.kind == Value::Kind::Sequence;
      if (isList && value.elements.size() != count)
        throw Failure("the sequences have " + std::to_string(count) + " and " + std::to_string(value.elements.size()) +
                      " elements");
      inputs.push_back(isList ? value.elements[i] : value);
    }
    std::vector<Value> results = node.run(body, std::move(inputs));
    for (size_t k = 0; k < outputs.size(); ++k)
      outputs[k].push_back(std::move(results[k]));
  }
  for (size_t k = 0; k < outputs.size(); ++k)
    node.set(k, Value::sequence(std::move(outputs[k])));
}

} // namespace ds::import::ops
