#include "kernels/Call.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace ds::kernels {

Call::Call(const Invocation &invocation) : invocation_(invocation) {
  for (size_t i = 0; i < invocation.operands.size(); ++i) {
    const TensorType &type = invocation.operands[i];
    require(dtypeFromNumber(int(type.dtype)).has_value(), "operand " + std::to_string(i) + " has no known dtype");
    require(type.shape.size() <= maxRank, "operand " + std::to_string(i) + " has rank " +
                                              std::to_string(type.shape.size()) + "; at most " +
                                              std::to_string(maxRank) + " is supported");
    Shape nonZero = type.shape;
    std::replace(nonZero.begin(), nonZero.end(), int64_t(0), int64_t(1));
    nonZero.push_back(byteSize(type.dtype));
    require(checkedElementCount(nonZero).has_value(),
            "operand " + std::to_string(i) + " has the impossible shape " + toString(type.shape));
  }
}

void Call::fail(const std::string &why) const { throw Error("kernel '" + invocation_.kernel + "': " + why); }

void Call::expectOperands(size_t count) const {
  require(operandCount() == count,
          "takes " + std::to_string(count) + " operands, not " + std::to_string(operandCount()));
}

void Call::expectShape(size_t operand, const Shape &expected) const {
  require(shape(operand) == expected, "operand " + std::to_string(operand) + " must have shape " + toString(expected) +
                                          ", not " + toString(shape(operand)));
}

void Call::expectDType(size_t operand, DType expected) const {
  require(dtype(operand) == expected, "operand " + std::to_string(operand) + " must be " + std::string(name(expected)) +
                                          ", not " + std::string(name(dtype(operand))));
}

void Call::expectScalar(size_t operand, DType expected) const {
  expectShape(operand, {});
  expectDType(operand, expected);
}

void Call::expectFloat(size_t operand) const {
  require(isWideFloat(dtype(operand)), "operand " + std::to_string(operand) + " must be float32 or float64, not " +
                                           std::string(name(dtype(operand))));
}

void Call::expectIndex(size_t operand) const {
  require(dtype(operand) == DType::I32 || dtype(operand) == DType::I64,
          "operand " + std::to_string(operand) + " must be int32 or int64, not " + std::string(name(dtype(operand))));
}

void Call::expectLike(size_t operand, size_t other) const {
  expectShape(operand, shape(other));
  expectDType(operand, dtype(other));
}

const AttributeValue &Call::attribute(std::string_view name) const {
  auto it = invocation_.attributes.find(name);
  require(it != invocation_.attributes.end(), "needs attribute '" + std::string(name) + "'");
  return it->second;
}

int64_t Call::integer(std::string_view name) const {
  const auto *value = std::get_if<int64_t>(&attribute(name));
  require(value != nullptr, "attribute '" + std::string(name) + "' must be an integer");
  return *value;
}

int64_t Call::integerIn(std::string_view name, int64_t low, int64_t high) const {
  const int64_t value = integer(name);
  require(value >= low && value <= high, "attribute '" + std::string(name) + "' must be in [" + std::to_string(low) +
                                             ", " + std::to_string(high) + "], not " + std::to_string(value));
  return value;
}

double Call::number(std::string_view name) const {
  const AttributeValue &value = attribute(name);
  if (const auto *integer = std::get_if<int64_t>(&value))
    return double(*integer);
  const auto *number = std::get_if<double>(&value);
  require(number != nullptr, "attribute '" + std::string(name) + "' must be a number");
  require(std::isfinite(*number), "attribute '" + std::string(name) + "' must be finite");
  return *number;
}

double Call::numberIn(std::string_view name, double low, double high) const {
  const double value = number(name);
  require(value >= low && value <= high, "attribute '" + std::string(name) + "' must be in [" + std::to_string(low) +
                                             ", " + std::to_string(high) + "], not " + std::to_string(value));
  return value;
}

const std::string &Call::text(std::string_view name) const {
  const auto *value = std::get_if<std::string>(&attribute(name));
  require(value != nullptr, "attribute '" + std::string(name) + "' must be text");
  return *value;
}

std::vector<int64_t> Call::integers(std::string_view name) const {
  const AttributeValue &value = attribute(name);
  if (const auto *list = std::get_if<std::vector<int64_t>>(&value))
    return *list;
  // An empty list does not show its element type.
  const auto *numbers = std::get_if<std::vector<double>>(&value);
  require(numbers && numbers->empty(), "attribute '" + std::string(name) + "' must be a list of integers");
  return {};
}

std::vector<double> Call::numbers(std::string_view name) const {
  const AttributeValue &value = attribute(name);
  if (const auto *list = std::get_if<std::vector<double>>(&value))
    return *list;
  const auto *list = std::get_if<std::vector<int64_t>>(&value);
  require(list != nullptr, "attribute '" + std::string(name) + "' must be a list of numbers");
  return {list->begin(), list->end()};
}

size_t Call::axis(const Shape &shape) const { return normalizedAxis(*this, integer("axis"), shape.size()); }

size_t normalizedAxis(const Call &call, int64_t axis, size_t rank) {
  const auto bound = int64_t(rank);
  call.require(axis >= -bound && axis < bound,
               "axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  return size_t(axis < 0 ? axis + bound : axis);
}

AxisView viewAlong(const Shape &shape, size_t axis) {
  AxisView view{1, shape[axis], 1};
  for (size_t d = 0; d < shape.size(); ++d)
    (d < axis ? view.outer : view.inner) *= d == axis ? 1 : shape[d];
  return view;
}

std::array<int64_t, maxRank> rowMajorStrides(const Shape &shape) {
  std::array<int64_t, maxRank> strides{};
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

} // namespace ds::kernels
