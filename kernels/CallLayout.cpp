#include "core/Error.h"
#include "kernels/KernelTable.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>

namespace ds::kernels {

namespace {

[[noreturn]] void fail(const Invocation &invocation, const std::string &why) {
  throw Error("kernel '" + invocation.kernel + "': " + why);
}

std::string quoted(std::string_view name) { return "attribute '" + std::string(name) + "'"; }

/// "mean, sum or none".
std::string listed(std::string_view choices) {
  std::string list;
  while (true) {
    const size_t bar = choices.find('|');
    list += choices.substr(0, bar);
    if (bar == std::string_view::npos)
      return list;
    choices.remove_prefix(bar + 1);
    list += choices.find('|') == std::string_view::npos ? " or " : ", ";
  }
}

bool isChoice(std::string_view choices, std::string_view text) {
  return !text.empty() && text.find('|') == std::string_view::npos &&
         ("|" + std::string(choices) + "|").find("|" + std::string(text) + "|") != std::string::npos;
}

/// Why the value is not one of the row's kind, or nothing.
std::string mistakeOf(const AttributeRow &row, const AttributeValue &value) {
  const auto *integer = std::get_if<int64_t>(&value);
  const auto *number = std::get_if<double>(&value);
  const auto *text = std::get_if<std::string>(&value);
  const auto *integers = std::get_if<std::vector<int64_t>>(&value);
  const auto *numbers = std::get_if<std::vector<double>>(&value);
  switch (row.kind) {
  case AttributeKind::Integer:
    return integer ? "" : "must be an integer";
  case AttributeKind::Flag:
    return !integer                         ? "must be 0 or 1"
           : *integer == 0 || *integer == 1 ? ""
                                            : "must be 0 or 1, not " + std::to_string(*integer);
  case AttributeKind::Number:
    return integer ? "" : !number ? "must be a number" : std::isfinite(*number) ? "" : "must be finite";
  case AttributeKind::Integers: // an empty list does not show the type of its elements
    return integers || (numbers && numbers->empty()) ? "" : "must be a list of integers";
  case AttributeKind::Numbers:
    return integers || numbers ? "" : "must be a list of numbers";
  case AttributeKind::Text:
    break;
  }
  if (!text)
    return "must be text";
  const bool fits = row.choices.empty() || isChoice(row.choices, *text) || (row.optional && text->empty());
  return fits ? "" : "must be " + listed(row.choices) + ", not '" + *text + "'";
}

void checkAttributes(const KernelRow &row, const Invocation &invocation) {
  for (const AttributeRow &attribute : row.attributes)
    if (const auto it = invocation.attributes.find(attribute.name); it != invocation.attributes.end()) {
      if (const std::string mistake = mistakeOf(attribute, it->second); !mistake.empty())
        fail(invocation, quoted(attribute.name) + " " + mistake);
    } else if (!attribute.optional) {
      fail(invocation, "needs " + quoted(attribute.name));
    }
  for (const auto &[name, value] : invocation.attributes)
    if (row.attributes.find(name) == SIZE_MAX)
      fail(invocation, "has no " + quoted(name));
}

/// Neither 0 nor empty.
bool isSet(const AttributeValue &value) {
  if (const auto *integer = std::get_if<int64_t>(&value))
    return *integer != 0;
  if (const auto *number = std::get_if<double>(&value))
    return *number != 0;
  if (const auto *text = std::get_if<std::string>(&value))
    return !text->empty();
  const auto *integers = std::get_if<std::vector<int64_t>>(&value);
  return integers ? !integers->empty() : !std::get<std::vector<double>>(value).empty();
}

/// How often an operand of the row stands in a call; npos: as often as operands are left.
constexpr size_t npos = std::numeric_limits<size_t>::max();
size_t countOf(const OperandRow &operand, const Attributes &attributes) {
  if (operand.presence == Presence::Always)
    return operand.repeated ? npos : 1;
  const auto it = attributes.find(operand.attribute);
  if (operand.presence == Presence::By) {
    const auto *list = it == attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&it->second);
    return list ? list->size() : 0;
  }
  const auto *text = it == attributes.end() ? nullptr : std::get_if<std::string>(&it->second);
  const bool holds =
      it != attributes.end() && (operand.value.empty() ? isSet(it->second) : text && *text == operand.value);
  return holds == (operand.presence == Presence::If) ? 1 : 0;
}

} // namespace

bool SizeName::isName() const {
  return std::ranges::all_of(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '.'; });
}

std::vector<SizeName> sizeNames(std::string_view shape) {
  std::vector<SizeName> names;
  for (shape = shape.substr(1, shape.size() - 2); !shape.empty();) {
    const size_t comma = shape.find(", ");
    std::string_view name = shape.substr(0, comma);
    const bool isWhole = name.ends_with('!');
    if (isWhole)
      name.remove_suffix(1);
    names.push_back({name, name.ends_with("..."), isWhole});
    shape.remove_prefix(comma == std::string_view::npos ? shape.size() : comma + 2);
  }
  return names;
}

CallLayout::CallLayout(const Invocation &invocation) : row_(findKernel(invocation.kernel)) {
  if (!row_)
    fail(invocation, "is in no row of kernels/Kernels.inc");
  checkAttributes(*row_, invocation);
  const size_t given = invocation.operands.size();
  std::array<size_t, decltype(KernelRow::operands)::capacity> counts{};
  size_t wanted = 0, open = npos;
  for (size_t i = 0; i < row_->operands.size(); ++i)
    if (counts[i] = countOf(row_->operands[i], invocation.attributes); counts[i] == npos)
      open = i;
    else
      wanted += counts[i];
  if (open != npos) { // such kernels have no workspace
    if (given < wanted)
      fail(invocation, "takes at least " + std::to_string(wanted) + " operands, not " + std::to_string(given));
    counts[open] = given - wanted;
    wanted = given;
  }
  hasWorkspace_ = given == wanted + 1 && invocation.operands.back().dtype == DType::U8 &&
                  invocation.operands.back().shape.size() == 1;
  if (given != wanted + (hasWorkspace_ ? 1 : 0))
    fail(invocation, "takes " + std::to_string(wanted) + " operands, not " + std::to_string(given));
  for (size_t i = 0; i < row_->operands.size(); ++i)
    rows_.insert(rows_.end(), counts[i], uint8_t(i));
}

std::optional<size_t> CallLayout::find(std::string_view name) const {
  for (size_t i = 0; i < rows_.size(); ++i)
    if ((*this)[i].name == name)
      return i;
  return std::nullopt;
}

bool mayOverwrite(const Invocation &invocation, size_t operand, size_t result) {
  try {
    const CallLayout layout(invocation);
    if (std::max(operand, result) >= layout.size()) // a workspace
      return false;
    const TensorType &under = invocation.operands[operand], &over = invocation.operands[result];
    return layout.isOver(result, operand) && over.shape == under.shape && byteSize(over.dtype) == byteSize(under.dtype);
  } catch (const Error &) {
    return false;
  }
}

} // namespace ds::kernels
