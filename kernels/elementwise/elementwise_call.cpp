#include "kernels/elementwise/elementwise_call.h"

namespace ds::kernels {

namespace {

bool isKnown(int64_t opcode) {
  return opcode == int64_t(ElementwiseOp::Constant) ||
         std::ranges::any_of(elementwiseNames,
                             [&](const ElementwiseName &known) { return int64_t(known.op) == opcode; });
}

bool isComparison(ElementwiseOp op) { return op >= ElementwiseOp::Equal && op <= ElementwiseOp::GreaterEqual; }

bool isLogical(ElementwiseOp op) {
  return op == ElementwiseOp::And || op == ElementwiseOp::Or || op == ElementwiseOp::Xor || op == ElementwiseOp::Not;
}

/// Defined for float32 and float64 alone.
bool isFloatOnly(ElementwiseOp op) {
  switch (op) {
  case ElementwiseOp::Pow:
  case ElementwiseOp::Sqrt:
  case ElementwiseOp::Rsqrt:
  case ElementwiseOp::Reciprocal:
  case ElementwiseOp::Exp:
  case ElementwiseOp::Log:
  case ElementwiseOp::Log1p:
  case ElementwiseOp::Expm1:
  case ElementwiseOp::GeluTanh:
  case ElementwiseOp::GeluTanhSlope:
  case ElementwiseOp::Erf:
  case ElementwiseOp::Tanh:
  case ElementwiseOp::Sigmoid:
  case ElementwiseOp::Sin:
  case ElementwiseOp::Cos:
  case ElementwiseOp::Floor:
  case ElementwiseOp::Ceil:
  case ElementwiseOp::Round:
  case ElementwiseOp::Atan:
    return true;
  default:
    return false;
  }
}

/// Whether an operand of shape `from` broadcasts to `to` as in NumPy, without growing it.
bool broadcasts(const Shape &from, const Shape &to) {
  if (from.size() > to.size())
    return false;
  for (size_t d = 0; d < from.size(); ++d)
    if (const int64_t size = from[from.size() - 1 - d]; size != 1 && size != to[to.size() - 1 - d])
      return false;
  return true;
}

} // namespace

ElementwiseCall::ElementwiseCall(const Call &call) {
  for (int64_t result : call.integers("results")) {
    call.require(result >= 0 && result <= INT32_MAX, "result names register " + std::to_string(result));
    results.push_back(int(result));
  }
  call.require(!results.empty(), "attribute 'results' is empty");
  inputs = call.operandCount() - results.size();
  shape = call.shape(inputs);
  elements = elementCount(shape);
  for (size_t i = 0; i < inputs; ++i) {
    inputShapes.push_back(call.shape(i));
    types.push_back(call.dtype(i));
    call.require(broadcasts(call.shape(i), shape), "input " + std::to_string(i) + " " + toString(call.shape(i)) +
                                                       " does not broadcast to the result " + toString(shape));
  }
  readProgram(call);
  for (size_t i = 0; i < results.size(); ++i) {
    call.require(size_t(results[i]) < types.size(), "result " + std::to_string(i) + " is register " +
                                                        std::to_string(results[i]) + ", which is never defined");
    call.expectShape(inputs + i, shape);
    const DType type = types[size_t(results[i])], given = call.dtype(inputs + i);
    call.require(given == type, "result " + std::to_string(i) + " must be " + std::string(name(type)) + ", not " +
                                    std::string(name(given)));
  }
}

void ElementwiseCall::readProgram(const Call &call) {
  const std::vector<int64_t> code = call.integers("program");
  const std::vector<double> constants = call.numbers("constants");
  constexpr size_t width = elementwiseInstructionWidth;
  call.require(code.size() % width == 0,
               "attribute 'program' has " + std::to_string(code.size()) + " integers, not a multiple of five");
  for (size_t i = 0; i < code.size() / width; ++i) {
    const int64_t *word = &code[i * width];
    const std::string at = "instruction " + std::to_string(i);
    call.require(isKnown(word[0]), at + " has the unknown opcode " + std::to_string(word[0]));
    const bool knownType = word[1] >= 0 && word[1] <= INT32_MAX && dtypeFromNumber(int(word[1]));
    call.require(knownType, at + " has the unknown dtype " + std::to_string(word[1]));
    ElementwiseInstruction instruction{ElementwiseOp(word[0]), DType(word[1]), {-1, -1, -1}, 0};
    for (size_t s = 0; s < size_t(elementwiseArity(instruction.op)); ++s) {
      call.require(word[2 + s] >= 0 && word[2 + s] < int64_t(types.size()),
                   at + " reads register " + std::to_string(word[2 + s]) + ", which is not defined before it");
      instruction.sources[s] = int(word[2 + s]);
    }
    if (instruction.op == ElementwiseOp::Constant) {
      call.require(word[2] >= 0 && word[2] < int64_t(constants.size()),
                   at + " reads constant " + std::to_string(word[2]) + " of " + std::to_string(constants.size()));
      instruction.constant = constants[size_t(word[2])];
    }
    checkTypes(call, i, instruction);
    program.push_back(instruction);
    types.push_back(instruction.type);
  }
}

void ElementwiseCall::checkTypes(const Call &call, size_t index, const ElementwiseInstruction &instruction) const {
  const ElementwiseOp op = instruction.op;
  if (op == ElementwiseOp::Constant || op == ElementwiseOp::Cast)
    return;
  const std::string at = "instruction " + std::to_string(index) + " (opcode " + std::to_string(int64_t(op)) + ")";
  const DType first = types[size_t(instruction.sources[0])];
  auto source = [&](size_t s) { return types[size_t(instruction.sources[s])]; };
  if (op == ElementwiseOp::Select) {
    call.require(first == DType::Bool, at + " chooses by a " + std::string(name(first)) + ", not a bool");
    call.require(source(1) == instruction.type && source(2) == instruction.type,
                 at + " chooses between " + std::string(name(source(1))) + " and " + std::string(name(source(2))) +
                     " for a " + std::string(name(instruction.type)));
    return;
  }
  if (elementwiseArity(op) == 2)
    call.require(first == source(1),
                 at + " mixes " + std::string(name(first)) + " and " + std::string(name(source(1))));
  const DType result = isComparison(op) || op == ElementwiseOp::IsNan ? DType::Bool : first;
  call.require(instruction.type == result, at + " on " + std::string(name(first)) + " gives " +
                                               std::string(name(result)) + ", not " +
                                               std::string(name(instruction.type)));
  const bool any = op == ElementwiseOp::Copy || op == ElementwiseOp::Equal;
  const bool allowed = any                          ? true
                       : isLogical(op)              ? first == DType::Bool
                       : isFloatOnly(op)            ? isFloat(first)
                       : op == ElementwiseOp::IsNan ? isFloat(first)
                                                    : first != DType::Bool;
  call.require(allowed, at + " is not defined for " + std::string(name(first)));
}

std::array<int64_t, maxRank> broadcastStrides(const Shape &from, const Shape &to) {
  std::array<int64_t, maxRank> strides{};
  const auto own = rowMajorStrides(from);
  const size_t missing = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    strides[d + missing] = from[d] == 1 ? 0 : own[d];
  return strides;
}

} // namespace ds::kernels
