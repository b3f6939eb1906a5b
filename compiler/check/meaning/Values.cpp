//===- Values.cpp - the values of the reference program, by what they are --===//
#include "compiler/check/Values.h"

#include "compiler/check/Refusal.h"
#include "core/Crc32c.h"
#include "core/DType.h"
#include "kernels/BFloat16.h"
#include "kernels/ElementwiseProgram.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <span>

namespace ds::check {

namespace {

using kernels::ElementwiseOp;

std::optional<ElementwiseOp> opcodeOf(std::string_view op) {
  constexpr std::string_view prefix = "train.";
  return op.starts_with(prefix) ? kernels::elementwiseNamed(op.substr(prefix.size())) : std::nullopt;
}

const proto::Attribute *find(const proto::ReferenceOp &op, std::string_view name) {
  for (const proto::Attribute &attribute : op.attributes())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

/// The number that every element is, if they are all alike.
std::optional<double> splat(std::string_view bytes, proto::DType type) {
  const auto dtype = dtypeFromNumber(type);
  const auto size = size_t(dtype ? byteSize(*dtype) : 0);
  if (size == 0 || bytes.size() < size || bytes.substr(size) != bytes.substr(0, bytes.size() - size))
    return std::nullopt;
  const auto as = [&]<typename T>(T value) {
    std::memcpy(&value, bytes.data(), size);
    return double(value);
  };
  switch (*dtype) {
  case DType::F32:
    return as(float());
  case DType::F64:
    return as(double());
  case DType::BF16:
    return as(BFloat16());
  case DType::I64:
    return as(int64_t());
  case DType::I32:
    return as(int32_t());
  default:
    return size == 1 ? std::optional(double(uint8_t(bytes[0]))) : std::nullopt;
  }
}

} // namespace

/// What the rules rely on: an op that reads or writes a variable names it, one that passes a value on has it.
static void requireWhole(const proto::ReferenceOp &op, int index) {
  const bool usesVariable = op.op() == "train.read" || op.op() == "train.store" || op.op() == "train.accumulate" ||
                            op.op() == "train.increment";
  const bool usesValue = op.op() == "train.store" || op.op() == "train.accumulate" || op.op() == "train.reshape" ||
                         op.op() == "train.broadcast";
  if ((usesVariable && op.variables_size() == 0) || (usesValue && op.operands_size() == 0))
    throw Refusal{"meaning", "reference op " + std::to_string(index) + " (" + op.op() + ") names no " +
                                 (usesVariable && op.variables_size() == 0 ? "variable" : "value")};
}

double rounded(double value, int64_t dtype) {
  return dtype == proto::DTYPE_F32 ? double(float(value)) : dtype == proto::DTYPE_BF16 ? BFloat16(float(value)) : value;
}

Values::Values(const proto::Plan &plan)
    : plan_(plan), names_{"something", "parts of other values"}, numbers_(size_t(plan.reference().values_size())) {
  for (int v = 0; v < plan.reference().values_size(); ++v)
    numbers_[size_t(v)] = input(plan.reference().values(v).name()); // those that an op defines follow
  for (int i = 0; i < plan.reference().ops_size(); ++i) {
    const proto::ReferenceOp &op = plan.reference().ops(i);
    requireWhole(op, i);
    for (int r = 0; r < op.results_size(); ++r)
      numbers_[op.results(r)] = numberResult(op, r);
    if (op.op() == "train.store" && op.function() == "microbatch")
      stored_[op.variables(0)] = numbers_[op.operands(0)];
  }
}

uint32_t Values::number(const std::string &key, const std::string &name) {
  const auto [it, fresh] = known_.try_emplace(key, uint32_t(names_.size()));
  if (fresh)
    names_.push_back(name);
  return it->second;
}

uint32_t Values::input(std::string_view name) {
  return number("input " + std::string(name), "input " + std::string(name));
}

uint32_t Values::constant(double value) {
  const auto [known, isNew] = constants_.try_emplace(std::bit_cast<uint64_t>(value));
  if (isNew)
    known->second = number("constant " + std::to_string(known->first), "the constant " + std::to_string(value));
  return known->second;
}

uint32_t Values::padding() { return number("padding", "padding"); }

uint32_t Values::variable(uint32_t index) {
  const auto [known, isNew] = variables_.try_emplace(index);
  if (isNew) {
    const proto::Variable &variable = plan_.variables(int(index));
    known->second = variable.kind() == proto::Variable::CONSTANT
                        ? numberConstant(variable)
                        : number("variable " + std::to_string(index), variable.name());
  }
  return known->second;
}

uint32_t Values::numberConstant(const proto::Variable &variable) {
  if (variable.source().has_fill())
    return constant(variable.source().fill());
  const std::string &bytes = variable.source().literal();
  if (const auto value = splat(bytes, variable.dtype()))
    return constant(*value);
  return number("constants " + std::to_string(crc32c(std::as_bytes(std::span(bytes)))), variable.name());
}

uint32_t Values::incremented(uint32_t value) {
  return number("incremented " + std::to_string(value), names_[value] + " after an update");
}

uint32_t Values::apply(int64_t opcode, int64_t dtype, std::span<const uint32_t> operands) {
  if (opcode == int64_t(ElementwiseOp::Copy))
    return operands[0];
  std::string key = "elementwise " + std::to_string(opcode) + " " + std::to_string(dtype);
  for (uint32_t operand : operands) {
    if (operand == unknown || operand == other)
      return operand;
    key += " " + std::to_string(operand);
  }
  const uint32_t result = number(key, "what no op computes");
  if (opcode == int64_t(ElementwiseOp::Add))
    additions_[result] = {operands[0], operands[1]};
  return result;
}

bool Values::addUp(std::span<const uint32_t> values, uint32_t total, bool whole) const {
  std::vector<uint32_t> missing(values.begin(), values.end()), open = {total};
  while (!open.empty()) {
    const uint32_t value = open.back();
    open.pop_back();
    if (const auto found = std::ranges::find(missing, value); found != missing.end()) {
      missing.erase(found);
      continue;
    }
    const auto terms = additions_.find(value);
    if (terms != additions_.end()) {
      open.push_back(terms->second.first);
      open.push_back(terms->second.second);
    } else if (whole) {
      return false;
    }
  }
  return missing.empty();
}

std::string Values::keyOf(const proto::ReferenceOp &op, int result) const {
  std::string key = op.op() + " " + std::to_string(result);
  for (uint32_t operand : op.operands())
    key += " " + std::to_string(numbers_[operand]);
  for (const proto::Attribute &attribute : op.attributes())
    key += "\n" + attribute.SerializeAsString();
  return key;
}

uint32_t Values::numberResult(const proto::ReferenceOp &op, int result) {
  const proto::ReferenceValue &value = plan_.reference().values(int(op.results(result)));
  const std::string name = op.op() + (op.name().empty() ? "" : " " + op.name());
  if (op.op() == "train.read") {
    const uint32_t stored = op.function() == "update" ? storedIn(op.variables(0)) : uint32_t(unknown);
    return stored == unknown ? variable(op.variables(0)) : stored;
  }
  if (op.op() == "train.reshape" || op.op() == "train.broadcast")
    return numbers_[op.operands(0)];
  if (op.op() == "train.loss_gradient" && find(op, "scale"))
    return constant(rounded(find(op, "scale")->number(), value.dtype()));
  if (op.op() == "train.constant") {
    if (const proto::Attribute *all = find(op, "value"))
      return constant(all->number());
    if (const proto::Attribute *checksum = find(op, "crc32c"))
      return number("constants " + std::to_string(checksum->integer()), name);
    return unknown;
  }
  if (const auto opcode = opcodeOf(op.op())) {
    std::vector<uint32_t> operands;
    for (uint32_t operand : op.operands())
      operands.push_back(numbers_[operand]);
    const uint32_t known = apply(int64_t(*opcode), value.dtype(), operands);
    if (known > other)
      names_[known] = name;
    return known;
  }
  return number(keyOf(op, result), name);
}

} // namespace ds::check
