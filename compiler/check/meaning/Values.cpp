//===- Values.cpp - the values of the reference program, by what they are --===//
#include "compiler/check/meaning/Values.h"

#include "compiler/check/meaning/Mismatch.h"
#include "compiler/check/meaning/ReferenceOps.h"
#include "core/Crc32c.h"
#include "core/DType.h"
#include "kernels/ElementwiseProgram.h"
#include "kernels/Numbers.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

namespace ds::check {

namespace {

using kernels::ElementwiseOp;

constexpr double mostExact = double(int64_t(1) << 53); // below it each integer is a double of its own
constexpr int64_t mostTimes = int64_t(1) << 40;        // that a sum may hold one term: no more are counted

std::optional<ElementwiseOp> opcodeOf(std::string_view op) {
  constexpr std::string_view prefix = "train.";
  return op.starts_with(prefix) ? kernels::elementwiseNamed(op.substr(prefix.size())) : std::nullopt;
}

/// The number that every element is, if they are all alike and a double holds it.
std::optional<double> splat(std::string_view bytes, proto::DType type) {
  const auto dtype = dtypeFromNumber(type);
  const auto size = size_t(dtype ? byteSize(*dtype) : 0);
  if (size == 0 || bytes.size() < size || bytes.substr(size) != bytes.substr(0, bytes.size() - size))
    return std::nullopt;
  const auto as = [&](auto value) -> std::optional<double> {
    std::memcpy(&value, bytes.data(), size);
    if (*dtype == DType::I64 && std::abs(double(value)) >= mostExact)
      return std::nullopt;
    return double(value);
  };
  if (isNarrowFloat(*dtype))
    return kernels::withNarrowFloat(*dtype, as);
  return kernels::withType(*dtype, as);
}

} // namespace

double rounded(double value, int64_t type) {
  const auto dtype = dtypeFromNumber(int(type));
  if (dtype && isNarrowFloat(*dtype))
    return kernels::withNarrowFloat(*dtype, [&](auto zero) { return double(decltype(zero)(float(value))); });
  return dtype == DType::F32 ? double(float(value)) : value;
}

uint64_t elementsIn(std::span<const int64_t> shape) {
  uint64_t elements = 1;
  for (int64_t dim : shape)
    elements *= uint64_t(dim);
  return elements;
}

Values::Values(const proto::Plan &plan)
    : plan_(plan), names_{"something", "parts of other values"}, types_(2),
      numbers_(size_t(plan.reference().values_size())) {
  for (const proto::ReferenceOp &op : plan.reference().ops())
    if (isCarried(plan, op))
      carried_.insert(op.variables(0));
  for (int v = 0; v < plan.reference().values_size(); ++v) // those that an op defines follow
    numbers_[size_t(v)] = input(plan.reference().values(v).name(), typeOf(plan.reference().values(v)));
  for (const proto::ReferenceOp &op : plan.reference().ops()) {
    for (int r = 0; r < op.results_size(); ++r)
      numbers_[op.results(r)] = numberResult(op, r);
    if (op.op() == "train.store" && op.function() == "microbatch")
      stored_[op.variables(0)] = numbers_[op.operands(0)];
    if (op.op() == "train.accumulate" && plan.variables(int(op.variables(0))).kind() == proto::Variable::GRADIENT)
      numberSum(op);
  }
  for (const auto &[held, number] : variables_)
    if (plan.variables(int(held.variable)).kind() != proto::Variable::CONSTANT)
      held_.try_emplace(number, held);
}

uint32_t Values::number(const std::string &key, const std::string &name, const ValueType &type) {
  const auto [it, fresh] = known_.try_emplace(key, uint32_t(names_.size()));
  if (fresh) {
    names_.push_back(name);
    types_.push_back(type);
  }
  return it->second;
}

Follows Values::followedBy(std::span<const uint32_t> values) const {
  Follows follows = Follows::Nothing;
  for (const uint32_t value : values)
    follows = std::max(follows, types_[value].follows);
  return follows;
}

uint32_t Values::input(std::string_view name, ValueType type) {
  type.follows = Follows::Samples;
  return number("input " + std::string(name), "input " + std::string(name), type);
}

uint32_t Values::constant(double value, proto::DType dtype) {
  const auto bits = std::bit_cast<uint64_t>(value);
  if (bits == 0)
    dtype = proto::DTYPE_UNSPECIFIED;
  const auto [known, isNew] = constants_.try_emplace({bits, int(dtype)});
  if (isNew)
    known->second = number("constant " + std::to_string(bits) + " " + std::to_string(int(dtype)),
                           "the constant " + std::to_string(value), {dtype});
  return known->second;
}

uint32_t Values::wholeVariable(uint32_t index, Version version) {
  constexpr const char *suffixes[] = {"", " after its update", " after an update by the factor 1"};
  const auto [known, isNew] = variables_.try_emplace({index, version});
  if (!isNew)
    return known->second;
  const proto::Variable *variable = index == noVariable ? nullptr : &plan_.variables(int(index));
  if (version == Version::Old && variable && variable->kind() == proto::Variable::CONSTANT)
    return known->second = numberConstant(index);
  const std::string suffix = suffixes[size_t(version)];
  ValueType type = variable ? typeOf(*variable) : ValueType();
  if (carried_.contains(index))
    type.follows = Follows::State;
  known->second =
      number("variable " + std::to_string(index) + suffix, (variable ? variable->name() : "padding") + suffix, type);
  held_.try_emplace(known->second, known->first);
  return known->second;
}

/// Gradients that sum up the same values are one value: those of two biases whose outputs are added, for example.
void Values::numberSum(const proto::ReferenceOp &accumulate) {
  const uint32_t variable = accumulate.variables(0), added = numbers_[accumulate.operands(0)];
  const Held sum{variable, Version::Old};
  const bool isSum = added > other && !variables_.contains(sum); // of this alone
  const proto::Variable &gradient = plan_.variables(int(variable));
  variables_[sum] = number(isSum ? "sum of " + std::to_string(added) : "variable " + std::to_string(variable),
                           gradient.name(), typeOf(gradient));
}

uint32_t Values::numberConstant(uint32_t index) {
  const proto::Variable &variable = plan_.variables(int(index));
  if (variable.source().has_fill())
    return constant(variable.source().fill(), variable.dtype());
  if (!variable.source().has_literal()) // its bytes are elsewhere
    return number("variable " + std::to_string(index), variable.name(), typeOf(variable));
  const std::string &bytes = variable.source().literal();
  if (const auto value = splat(bytes, variable.dtype()))
    return constant(*value, variable.dtype());
  // The reference program names a constant by this alone. So that it names one, no two have the same.
  const uint32_t checksum = crc32c(std::as_bytes(std::span(bytes)));
  const uint32_t first = literals_.try_emplace(checksum, index).first->second;
  if (const proto::Variable &same = plan_.variables(int(first)); same.source().literal() != bytes)
    throw Mismatch{"constants " + same.name() + " and " + variable.name() +
                   " have other elements, but the same checksum " + std::to_string(checksum) +
                   ", by which the reference program names them"};
  return number("constants " + std::to_string(checksum), variable.name(), typeOf(variable));
}

uint32_t Values::made(const std::string &how, uint32_t value, const std::string &name) {
  return value <= other ? value : number(how + std::to_string(value), name, ValueType(types_[value]));
}

uint32_t Values::incremented(uint32_t value) { return made("incremented ", value, names_[value] + " after an update"); }

uint32_t Values::withFirst(uint32_t variable, uint64_t count, uint64_t each) {
  const uint32_t whole = wholeVariable(variable);
  const uint64_t done = count / each;
  const std::string name = count % each != 0 ? names_[whole] + " within micro-batch " + std::to_string(done)
                           : done == 1 ? names_[whole] + " of the first micro-batch"
                                       : names_[whole] + " of the first " + std::to_string(done) + " micro-batches";
  return placedAs(variable, made("first " + std::to_string(count) + " of ", whole, name));
}

uint32_t Values::ofRunBefore(uint32_t variable) {
  return made("before ", this->variable(variable), names_[this->variable(variable)] + " of the run before");
}

uint32_t Values::summedOverRanks(uint32_t value) {
  return made("summed ", value, "the sum over ranks of " + names_[value]);
}

uint32_t Values::ofRank(uint32_t value, const std::string &whose) {
  return made(whose + " ", value, whose + "'s " + names_[value]);
}

uint32_t Values::converted(uint32_t value, proto::DType dtype) {
  if (const Placed *placed = placedIn(value); placed && !placed->spread.isPartial())
    return this->placed(converted(placed->whole, dtype), Spread(placed->spread));
  return apply(int64_t(ElementwiseOp::Cast), dtype, {&value, 1}, types_[value].elements.value_or(0));
}

uint32_t Values::broadcast(uint32_t value, std::span<const int64_t> from, std::span<const int64_t> to) {
  if (value == unknown || value == other || !types_[value].elements)
    return value; // every element is the same
  std::optional<Runs> runs = runsOf(from, to);
  if (!runs)
    return other;
  if (isWhole(*runs))
    return value;
  if (const auto inner = repeated_.find(value); inner != repeated_.end())
    if (const auto both = composed(inner->second.runs, *runs)) {
      value = inner->second.value;
      runs = both;
    }
  std::string key = "repeated " + std::to_string(value);
  for (const Run &run : *runs)
    key += (run.repeats ? " *" : " ") + std::to_string(run.count);
  const uint32_t result =
      number(key, names_[value] + ", repeated", {types_[value].dtype, elementsIn(to), types_[value].follows});
  repeated_.try_emplace(result, Repeated{value, *runs});
  return result;
}

uint32_t Values::apply(int64_t opcode, proto::DType dtype, std::span<const uint32_t> operands, uint64_t elements) {
  const auto op = ElementwiseOp(opcode);
  const proto::DType first = types_[operands[0]].dtype;
  const bool isSame = first == dtype || first == proto::DTYPE_UNSPECIFIED; // zeros are zeros in all types
  if (op == ElementwiseOp::Copy || (op == ElementwiseOp::Cast && isSame))
    return operands[0];
  for (const uint32_t nothing : {other, unknown})
    if (std::ranges::count(operands, nothing) > 0)
      return nothing;
  std::vector<uint32_t> terms(operands.begin(), operands.end());
  if (op == ElementwiseOp::Add || op == ElementwiseOp::Mul) // the same bits in either order
    std::ranges::sort(terms);
  std::string key = "elementwise " + std::to_string(opcode) + " " + std::to_string(int(dtype));
  for (const uint32_t term : terms)
    key += " " + std::to_string(term);
  const bool isOneNumber =
      std::ranges::none_of(terms, [&](uint32_t term) { return types_[term].elements.has_value(); });
  const uint32_t result = number(key, "what no op computes",
                                 {dtype, isOneNumber ? std::nullopt : std::optional(elements), followedBy(operands)});
  if (op == ElementwiseOp::Add)
    additions_[result] = {terms[0], terms[1]};
  if (op == ElementwiseOp::Cast)
    conversions_.try_emplace(result, terms[0]);
  return result;
}

bool Values::addUp(std::span<const uint32_t> values, uint32_t total, bool whole) const {
  std::map<uint32_t, int64_t> lacking = {
      {total, 1}}; // how often each term is still to come; below 0: is too often there
  for (const uint32_t value : values)
    --lacking[value];
  while (!lacking.empty()) { // a sum's number is above those of its terms
    const auto [value, times] = *lacking.rbegin();
    lacking.erase(value);
    const auto terms = additions_.find(value);
    if (times == 0)
      continue;
    if (terms == additions_.end() && (whole || times < 0))
      return false;
    if (terms == additions_.end())
      continue;
    if (std::abs(times) > mostTimes)
      return false;
    lacking[terms->second.first] += times;
    lacking[terms->second.second] += times;
  }
  return true;
}

std::string Values::keyOf(const proto::ReferenceOp &op, int result) const {
  std::string key = op.op() + " " + std::to_string(result);
  for (uint32_t operand : op.operands()) {
    key += " " + std::to_string(numbers_[operand]) + "[";
    for (int64_t dim : plan_.reference().values(int(operand)).shape())
      key += std::to_string(dim) + ",";
    key += "]";
  }
  for (const proto::Attribute &attribute : op.attributes())
    key += "\n" + attribute.SerializeAsString();
  return key;
}

/// The value of an elementwise op, or of sums of squares; nothing for others.
std::optional<uint32_t> Values::numberComputed(const proto::ReferenceOp &op, const proto::ReferenceValue &result) {
  const auto opcode = opcodeOf(op.op());
  const bool isElementwise = opcode && op.operands_size() == kernels::elementwiseArity(*opcode);
  if (!isElementwise && (op.op() != "train.block_sum_squares" || op.operands_size() != 1))
    return std::nullopt;
  std::vector<uint32_t> operands;
  for (uint32_t operand : op.operands()) {
    const proto::ReferenceValue &value = plan_.reference().values(int(operand));
    operands.push_back(isElementwise ? broadcast(numbers_[operand], shapeOf(value), shapeOf(result))
                                     : numbers_[operand]);
  }
  const proto::Attribute *block = attributeOf(op, "block");
  const uint32_t made = isElementwise ? apply(int64_t(*opcode), result.dtype(), operands, elementsIn(shapeOf(result)))
                                      : squares(operands[0], block ? block->integer() : wholeBlock,
                                                elementsIn(shapeOf(plan_.reference().values(int(op.operands(0))))));
  if (made > other && std::ranges::count(operands, made) == 0)
    names_[made] = titleOf(op);
  return made;
}

/// The value of an op that computes nothing; nothing for others.
std::optional<uint32_t> Values::numberGiven(const proto::ReferenceOp &op, const proto::ReferenceValue &result) {
  if (op.op() == "train.read") {
    const uint32_t stored = op.function() == "update" ? storedIn(op.variables(0)) : uint32_t(unknown);
    return stored == unknown ? wholeVariable(op.variables(0)) : stored;
  }
  if (op.op() == "train.reshape")
    return numbers_[op.operands(0)];
  const bool isConstant = op.op() == "train.constant";
  if (const proto::Attribute *all = attributeOf(op, isConstant ? "value" : "scale");
      all && (isConstant || op.op() == "train.loss_gradient"))
    return constant(rounded(all->number(), result.dtype()), result.dtype());
  if (const proto::Attribute *checksum = attributeOf(op, "crc32c"); checksum && isConstant)
    return number("constants " + std::to_string(checksum->integer()), titleOf(op), typeOf(result));
  return std::nullopt;
}

uint32_t Values::numberResult(const proto::ReferenceOp &op, int result) {
  const proto::ReferenceValue &value = plan_.reference().values(int(op.results(result)));
  std::optional<uint32_t> known = numberGiven(op, value);
  if (!known)
    known = numberComputed(op, value);
  if (known)
    return *known;
  ValueType type = typeOf(value);
  std::vector<uint32_t> operands;
  for (const uint32_t operand : op.operands())
    operands.push_back(numbers_[operand]);
  type.follows = draws(op) ? Follows::Samples : followedBy(operands);
  const std::string which = op.results_size() > 1 ? "result " + std::to_string(result) + " of " : "";
  return number(keyOf(op, result), which + titleOf(op), type);
}

} // namespace ds::check
