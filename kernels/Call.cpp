#include "kernels/Call.h"

#include <algorithm>
#include <map>
#include <variant>

namespace ds::kernels {

namespace {

/// "float32 or float64".
std::string typesIn(uint16_t types) {
  std::vector<std::string_view> names;
  for (int number = int(DType::Bool); number <= int(DType::F16); ++number)
    if (types & OperandTypes::bit(DType(number)))
      names.push_back(name(DType(number)));
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += std::string(i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + std::string(names[i]);
  return text;
}

/// The sizes that the names in a call's shapes stand for (KernelRow.h).
class ShapeNames {
public:
  /// Nothing if `shape` is the row's, else what it should be. New names take the sizes that they meet.
  std::string check(std::string_view row, const Shape &shape) {
    if (row.empty())
      return {};
    const std::vector<SizeName> names = sizeNames(row);
    const bool hasRest = std::ranges::any_of(names, &SizeName::isRest);
    if (hasRest ? shape.size() + 1 < names.size() : shape.size() != names.size())
      return expected(names);
    size_t d = 0;
    for (const SizeName &name : names) {
      const size_t count = name.isRest ? shape.size() + 1 - names.size() : 1;
      const Shape sizes(shape.begin() + int64_t(d), shape.begin() + int64_t(d + count));
      d += count;
      if (name.isName() && known_.try_emplace(name.name, sizes).first->second != sizes)
        return expected(names);
    }
    return {};
  }

private:
  /// "[4, cols]".
  std::string expected(const std::vector<SizeName> &names) const {
    std::string text;
    for (const SizeName &size : names) {
      const auto it = known_.find(size.name);
      const std::string sizes = it == known_.end() ? std::string(size.name) : toString(it->second);
      const std::string_view bare = it == known_.end() ? sizes : std::string_view(sizes).substr(1, sizes.size() - 2);
      text += (text.empty() || bare.empty() ? "" : ", ") + std::string(bare);
    }
    return "[" + text + "]";
  }

  std::map<std::string_view, Shape> known_;
};

} // namespace

Call::Call(const Invocation &invocation) : invocation_(invocation), layout_(invocation) {
  checkSizes();
  checkTypes();
  ShapeNames names;
  for (size_t i = 0; i < layout_.size(); ++i)
    if (const std::string expected = names.check(layout_[i].shape, shape(i)); !expected.empty())
      fail(titleOf(i) + " must have shape " + expected + ", not " + toString(shape(i)));
}

void Call::checkSizes() const {
  for (size_t i = 0; i < invocation_.operands.size(); ++i) {
    const TensorType &type = invocation_.operands[i];
    const std::string title = i < layout_.size() ? titleOf(i) : "the workspace";
    require(dtypeFromNumber(int(type.dtype)).has_value(), title + " has no known dtype");
    require(type.shape.size() <= maxRank, title + " has rank " + std::to_string(type.shape.size()) + "; at most " +
                                              std::to_string(maxRank) + " is supported");
    Shape nonZero = type.shape;
    std::replace(nonZero.begin(), nonZero.end(), int64_t(0), int64_t(1));
    nonZero.push_back(byteSize(type.dtype));
    require(checkedElementCount(nonZero).has_value(), title + " has the impossible shape " + toString(type.shape));
  }
}

void Call::checkTypes() {
  bool known = false; // the call's own type
  for (size_t i = 0; i < layout_.size(); ++i) {
    const OperandTypes &types = layout_[i].types;
    uint16_t allowed = types.any;
    if (types.own && known)
      allowed = types.also | OperandTypes::bit(own_);
    if (types.statistic || types.sum) // the first operand has set the call's type
      allowed |= OperandTypes::bit(isNarrowFloat(own_) ? DType::F32 : own_);
    if (types.sum)
      allowed |= OperandTypes::bit(own_);
    require((allowed & OperandTypes::bit(dtype(i))) != 0,
            titleOf(i) + " must be " + typesIn(allowed) + ", not " + std::string(name(dtype(i))));
    if (types.own && !known) {
      own_ = dtype(i);
      known = true;
    }
  }
}

void Call::fail(const std::string &why) const { throw Error("kernel '" + invocation_.kernel + "': " + why); }

std::string Call::titleOf(size_t operand) const {
  return "operand " + std::to_string(operand) + " (" + std::string(layout_[operand].name) + ")";
}

size_t Call::operator[](std::string_view name) const {
  const auto operand = layout_.find(name);
  require(operand.has_value(), "the call has no operand '" + std::string(name) + "'");
  return *operand;
}

void Call::expectShape(size_t operand, const Shape &expected) const {
  require(shape(operand) == expected,
          titleOf(operand) + " must have shape " + toString(expected) + ", not " + toString(shape(operand)));
}

void Call::requireWorkspace(Device device) const {
  Invocation without = invocation_;
  without.operands.resize(layout_.size());
  const int64_t needed = kernels::workspaceBytes(without, {.device = device});
  require(workspace().bytes >= needed,
          "workspace must have " + std::to_string(needed) + " bytes, not " + std::to_string(workspace().bytes));
}

const AttributeValue &Call::attribute(std::string_view name) const {
  auto it = invocation_.attributes.find(name);
  require(it != invocation_.attributes.end(), "needs attribute '" + std::string(name) + "'");
  return it->second;
}

// The layout has checked that the values are of the row's kinds.

int64_t Call::integer(std::string_view name) const { return std::get<int64_t>(attribute(name)); }

int64_t Call::integerIn(std::string_view name, int64_t low, int64_t high) const {
  const int64_t value = integer(name);
  require(value >= low && value <= high, "attribute '" + std::string(name) + "' must be in [" + std::to_string(low) +
                                             ", " + std::to_string(high) + "], not " + std::to_string(value));
  return value;
}

double Call::number(std::string_view name) const {
  const AttributeValue &value = attribute(name);
  const auto *integer = std::get_if<int64_t>(&value);
  return integer ? double(*integer) : std::get<double>(value);
}

double Call::numberIn(std::string_view name, double low, double high) const {
  const double value = number(name);
  require(value >= low && value <= high, "attribute '" + std::string(name) + "' must be in [" + std::to_string(low) +
                                             ", " + std::to_string(high) + "], not " + std::to_string(value));
  return value;
}

const std::string &Call::text(std::string_view name) const {
  static const std::string none;
  return has(name) ? std::get<std::string>(attribute(name)) : none;
}

std::vector<int64_t> Call::integers(std::string_view name) const {
  const auto *list = std::get_if<std::vector<int64_t>>(&attribute(name));
  return list ? *list : std::vector<int64_t>(); // an empty list does not show the type of its elements
}

std::vector<double> Call::numbers(std::string_view name) const {
  const AttributeValue &value = attribute(name);
  if (const auto *list = std::get_if<std::vector<double>>(&value))
    return *list;
  const auto &list = std::get<std::vector<int64_t>>(value);
  return {list.begin(), list.end()};
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
