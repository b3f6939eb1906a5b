#include "compiler/codegen/ElementwiseSteps.h"

#include "kernels/Numbers.h"

#include <optional>

using llvm::Value;

namespace ds::codegen {

using kernels::ElementwiseInstruction;
using kernels::ElementwiseOp;

namespace {

/// Whether an opcode on floats of 16 bits gives one of its operands, or a number that their type has anyway.
bool keepsBits(ElementwiseOp op) {
  switch (op) {
  case ElementwiseOp::Copy:
  case ElementwiseOp::Max:
  case ElementwiseOp::Min:
  case ElementwiseOp::Select:
  case ElementwiseOp::Neg:
  case ElementwiseOp::Abs:
  case ElementwiseOp::Relu:
  case ElementwiseOp::Sign:
  case ElementwiseOp::Constant: // rounded when it is made
    return true;
  default:
    return false;
  }
}

} // namespace

const LaneValues &ElementwiseSteps::value(size_t reg) {
  LaneValues &values = registers_[reg];
  if (values.empty()) // an instruction defines its register before it is asked for
    values = load_(reg);
  return values;
}

void ElementwiseSteps::run() {
  for (size_t k = 0; k < call_.program.size(); ++k) {
    const ElementwiseInstruction &instruction = call_.program[k];
    LaneValues operands[3], results;
    for (size_t s = 0; s < 3; ++s)
      operands[s] = instruction.sources[s] >= 0 ? value(size_t(instruction.sources[s])) : LaneValues(count_, nullptr);
    for (size_t lane = 0; lane < count_; ++lane)
      results.push_back(evaluate(instruction, operands[0][lane], operands[1][lane], operands[2][lane]));
    const bool narrow = isNarrowFloat(instruction.type) && !keepsBits(instruction.op);
    const auto isOf = [&](DType from) { return call_.types[size_t(instruction.sources[0])] == from; };
    const bool alreadyNarrow = instruction.op == ElementwiseOp::Cast && (isOf(instruction.type) || isOf(DType::Bool));
    registers_[call_.inputs + k] = narrow && !alreadyNarrow ? lanes_.rounded(results, instruction.type) : results;
  }
}

Value *ElementwiseSteps::evaluate(const ElementwiseInstruction &instruction, Value *x, Value *y, Value *z) {
  const ElementwiseOp op = instruction.op;
  switch (op) {
  case ElementwiseOp::Constant:
    return constant(instruction);
  case ElementwiseOp::Copy:
    return x;
  case ElementwiseOp::Cast:
    return cast(x, instruction.type);
  case ElementwiseOp::Select:
    return b_.CreateSelect(x, y, z);
  case ElementwiseOp::Not:
    return b_.CreateNot(x);
  case ElementwiseOp::IsNan:
    return b_.CreateFCmpUNO(x, x);
  default:
    break;
  }
  if (op >= ElementwiseOp::Equal && op <= ElementwiseOp::GreaterEqual)
    return compared(op, x, y);
  return kernels::elementwiseArity(op) == 2 ? binary(instruction, x, y) : unary(op, x);
}

Value *ElementwiseSteps::constant(const ElementwiseInstruction &instruction) {
  if (instruction.type == DType::Bool)
    return b_.getInt1(instruction.constant != 0);
  const auto wide = float(instruction.constant);
  if (!isNarrowFloat(instruction.type))
    return model_.number(wide).value;
  return kernels::withNarrowFloat(instruction.type,
                                  [&](auto zero) { return model_.number(float(decltype(zero)(wide))).value; });
}

Value *ElementwiseSteps::cast(Value *x, DType to) {
  const bool fromBool = x->getType()->isIntegerTy();
  if (to == DType::Bool)
    return fromBool ? x : b_.CreateFCmpUNE(x, model_.number(0).value);
  return fromBool ? b_.CreateSelect(x, model_.number(1).value, model_.number(0).value) : x;
}

Value *ElementwiseSteps::compared(ElementwiseOp op, Value *x, Value *y) {
  if (x->getType()->isIntegerTy()) // bools can be equal alone
    return b_.CreateICmpEQ(x, y);
  switch (op) {
  case ElementwiseOp::Equal:
    return b_.CreateFCmpOEQ(x, y);
  case ElementwiseOp::Less:
    return b_.CreateFCmpOLT(x, y);
  case ElementwiseOp::LessEqual:
    return b_.CreateFCmpOLE(x, y);
  case ElementwiseOp::Greater:
    return b_.CreateFCmpOGT(x, y);
  default:
    return b_.CreateFCmpOGE(x, y);
  }
}

Value *ElementwiseSteps::binary(const ElementwiseInstruction &instruction, Value *x, Value *y) {
  switch (instruction.op) {
  case ElementwiseOp::Add:
    return b_.CreateFAdd(x, y);
  case ElementwiseOp::Sub:
    return b_.CreateFSub(x, y);
  case ElementwiseOp::Mul:
    return b_.CreateFMul(x, y);
  case ElementwiseOp::Div:
    return b_.CreateFDiv(x, y);
  case ElementwiseOp::Pow:
    return power(instruction, model_.of(x), model_.of(y)).value;
  case ElementwiseOp::Max:
    return b_.CreateSelect(b_.CreateOr(b_.CreateFCmpUNO(x, x), b_.CreateFCmpOGT(x, y)), x, y);
  case ElementwiseOp::Min:
    return b_.CreateSelect(b_.CreateOr(b_.CreateFCmpUNO(x, x), b_.CreateFCmpOLT(x, y)), x, y);
  case ElementwiseOp::And:
    return b_.CreateAnd(x, y);
  case ElementwiseOp::Or:
    return b_.CreateOr(x, y);
  default:
    return b_.CreateXor(x, y);
  }
}

/// Constant exponents as the CPU's kernel takes them (kernels/elementwise/elementwise_select.h).
IrFloat ElementwiseSteps::power(const ElementwiseInstruction &instruction, IrFloat x, IrFloat y) {
  const int exponent = instruction.sources[1] - int(call_.inputs);
  const IrFloat one = model_.number(1);
  if (exponent < 0 || call_.program[size_t(exponent)].op != ElementwiseOp::Constant)
    return functions_.pow(x, y);
  const double value = call_.program[size_t(exponent)].constant;
  if (value == 1)
    return x;
  if (value == 2)
    return x * x;
  if (value == 3)
    return x * x * x;
  if (value == 0.5)
    return model_.unary(llvm::Intrinsic::sqrt, x);
  if (value == -0.5)
    return one / model_.unary(llvm::Intrinsic::sqrt, x);
  if (value == -1)
    return one / x;
  if (value == -2)
    return one / (x * x);
  return functions_.pow(x, y);
}

Value *ElementwiseSteps::unary(ElementwiseOp op, Value *operand) {
  const IrFloat x = model_.of(operand), zero = model_.number(0), one = model_.number(1);
  switch (op) {
  case ElementwiseOp::Neg:
    return (-x).value;
  case ElementwiseOp::Abs:
    return model_.abs(x).value;
  case ElementwiseOp::Sqrt:
    return model_.unary(llvm::Intrinsic::sqrt, x).value;
  case ElementwiseOp::Rsqrt:
    return (one / model_.unary(llvm::Intrinsic::sqrt, x)).value;
  case ElementwiseOp::Reciprocal:
    return (one / x).value;
  case ElementwiseOp::Exp:
    return functions_.exp(x).value;
  case ElementwiseOp::Log:
    return functions_.log(x).value;
  case ElementwiseOp::Log1p:
    return functions_.log1p(x).value;
  case ElementwiseOp::Expm1:
    return functions_.expm1(x).value;
  case ElementwiseOp::GeluTanh:
    return functions_.geluTanh(x).value;
  case ElementwiseOp::GeluTanhSlope:
    return functions_.geluTanhSlope(x).value;
  case ElementwiseOp::Erf:
    return functions_.erf(x).value;
  case ElementwiseOp::Tanh:
    return functions_.tanh(x).value;
  case ElementwiseOp::Sigmoid:
    return functions_.sigmoid(x).value;
  case ElementwiseOp::Sin:
    return functions_.sin(x).value;
  case ElementwiseOp::Cos:
    return functions_.cos(x).value;
  case ElementwiseOp::Atan:
    return functions_.atan(x).value;
  case ElementwiseOp::Relu:
    return model_.select(x < zero, zero, x).value;
  case ElementwiseOp::Sign:
    return model_.select(x > zero, one, model_.select(x < zero, -one, zero)).value;
  case ElementwiseOp::Floor:
    return model_.floor(x).value;
  case ElementwiseOp::Ceil:
    return model_.unary(llvm::Intrinsic::ceil, x).value;
  default: // Round
    return model_.unary(llvm::Intrinsic::rint, x).value;
  }
}

} // namespace ds::codegen
