//===- ElementwiseSelection.cpp - elementwise ops as little programs --------===//
#include "compiler/analysis/KernelSelection.h"

#include "compiler/analysis/KernelWriter.h"
#include "kernels/ElementwiseProgram.h"

#include "mlir/IR/Matchers.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ds;
using namespace ds::train;
using kernels::ElementwiseOp;

std::optional<double> ds::splatConstant(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat())
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().convertToDouble();
  const APInt number = elements.getSplatValue<APInt>();
  if (number.getBitWidth() == 1)
    return number.isZero() ? 0.0 : 1.0;
  // Constants travel as doubles: only integers that a double holds are inlined.
  const int64_t integer = number.getSExtValue();
  return std::abs(integer) <= (int64_t(1) << 53) ? std::optional<double>(double(integer)) : std::nullopt;
}

ds::DType ds::dtypeOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (element.isF32())
    return DType::F32;
  if (element.isF64())
    return DType::F64;
  if (element.isBF16())
    return DType::BF16;
  if (element.isF16())
    return DType::F16;
  if (element.isInteger(64))
    return DType::I64;
  if (element.isInteger(32))
    return DType::I32;
  return element.isInteger(8) ? DType::U8 : DType::Bool;
}

namespace {

/// Writes instructions; inputs must be declared before the first one.
class ProgramWriter {
public:
  /// `value` becomes input register number inputs.
  void input(Value value) { registers_[value] = inputs_++; }

  /// The register of `value`; a constant is written where it is first used.
  FailureOr<int64_t> registerOf(Value value) {
    auto it = registers_.find(value);
    if (it != registers_.end())
      return it->second;
    std::optional<double> constant = splatConstant(value);
    if (!constant)
      return failure();
    return registers_[value] = number(dtypeOf(value.getType()), *constant);
  }

  /// A register that holds `value`.
  int64_t number(DType dtype, double value) {
    constants_.push_back(value);
    return emit(ElementwiseOp::Constant, dtype, {int64_t(constants_.size()) - 1});
  }

  LogicalResult apply(Operation *op) {
    const std::optional<ElementwiseOp> opcode = kernels::elementwiseNamed(op->getName().stripDialect());
    SmallVector<int64_t> operands;
    for (Value operand : op->getOperands()) {
      FailureOr<int64_t> number = registerOf(operand);
      if (!opcode || failed(number))
        return op->emitOpError("has no place in an elementwise program");
      operands.push_back(*number);
    }
    registers_[op->getResult(0)] = emit(*opcode, dtypeOf(op->getResult(0).getType()), operands);
    return success();
  }

  SmallVector<NamedAttribute> attributes(MLIRContext *context, ArrayRef<int64_t> results) const {
    KernelWriter<"elementwise"> writer(context);
    return writer.with("program", program_).with("constants", constants_).with("results", results).call().attributes;
  }

  int64_t emit(ElementwiseOp opcode, DType dtype, ArrayRef<int64_t> operands) {
    program_.append({int64_t(opcode), int64_t(dtype)});
    for (size_t i = 0; i < 3; ++i)
      program_.push_back(i < operands.size() ? operands[i] : -1);
    return inputs_ + int64_t(program_.size()) / kernels::elementwiseInstructionWidth - 1;
  }

private:
  int64_t inputs_ = 0;
  llvm::DenseMap<Value, int64_t> registers_; // looked up, never iterated
  SmallVector<int64_t> program_;
  SmallVector<double> constants_;
};

} // namespace

static KernelCall emptyCall() { return {std::string(kernels::kernel<"elementwise">.name), {}, {}}; }

static FailureOr<KernelCall> selectFused(FusedOp op) {
  KernelCall call = emptyCall();
  ProgramWriter writer;
  Block &body = op.getBody().front();
  for (auto [input, argument] : llvm::zip(op.getInputs(), body.getArguments())) {
    call.read(input);
    writer.input(argument);
  }
  for (Operation &inner : body.without_terminator())
    if (!isa<ConstantOp>(inner) && failed(writer.apply(&inner)))
      return failure();
  SmallVector<int64_t> results;
  for (Value value : cast<YieldOp>(body.getTerminator()).getValues()) {
    FailureOr<int64_t> number = writer.registerOf(value);
    if (failed(number))
      return op.emitOpError("yields a constant that has no place in an elementwise program");
    results.push_back(*number);
  }
  for (Value output : op.getOutputs())
    call.write(output);
  call.attributes = writer.attributes(op.getContext(), results);
  return call;
}

FailureOr<KernelCall> ds::selectElementwise(Operation *op) {
  if (auto fused = dyn_cast<FusedOp>(op))
    return selectFused(fused);
  KernelCall call = emptyCall();
  ProgramWriter writer;
  llvm::DenseSet<Value> seen;
  for (Value operand : op->getOperands())
    if (!splatConstant(operand) && seen.insert(operand).second) {
      call.read(operand);
      writer.input(operand);
    }
  if (failed(writer.apply(op)))
    return failure();
  call.write(op->getResult(0));
  call.attributes = writer.attributes(op->getContext(), {*writer.registerOf(op->getResult(0))});
  return call;
}

KernelCall ds::selectAccumulate(AccumulateOp op) {
  KernelCall call = emptyCall();
  auto type = cast<RankedTensorType>(op.getValue().getType());
  StringAttr name = op.getVariableAttr().getAttr();
  call.variable(name, type, plan::Access::Read);
  call.read(op.getValue());
  call.variable(name, type, plan::Access::Write);
  ProgramWriter sum;
  sum.input(Value()); // the accumulator
  sum.input(op.getValue());
  const int64_t result = sum.emit(ElementwiseOp::Add, dtypeOf(type), {0, 1});
  call.attributes = sum.attributes(op.getContext(), {result});
  return call;
}

KernelCall ds::selectUpdateAverage(UpdateAverageOp op) {
  KernelCall call = emptyCall();
  auto type = cast<RankedTensorType>(op.getValue().getType());
  StringAttr name = op.getVariableAttr().getAttr();
  call.variable(name, type, plan::Access::Read);
  call.read(op.getValue());
  call.variable(name, type, plan::Access::Write);
  ProgramWriter average;
  average.input(Value()); // the variable
  average.input(op.getValue());
  const DType dtype = dtypeOf(type);
  const double momentum = op.getMomentum().convertToDouble();
  const int64_t keep = average.number(dtype, momentum);
  const int64_t take = average.number(dtype, (1 - momentum) * op.getCorrection().convertToDouble());
  const int64_t kept = average.emit(ElementwiseOp::Mul, dtype, {0, keep});
  const int64_t taken = average.emit(ElementwiseOp::Mul, dtype, {1, take});
  const int64_t result = average.emit(ElementwiseOp::Add, dtype, {kept, taken});
  call.attributes = average.attributes(op.getContext(), {result});
  return call;
}

KernelCall ds::selectCopy(Value value) {
  KernelCall call = emptyCall();
  call.read(value);
  call.write(value);
  ProgramWriter copy;
  copy.input(value);
  const int64_t result = copy.emit(ElementwiseOp::Copy, dtypeOf(value.getType()), {0});
  call.attributes = copy.attributes(value.getContext(), {result});
  return call;
}

bool ds::isCopy(plan::KernelOp kernel) {
  auto program = kernel.getKernel() == "elementwise" ? kernel.getArguments().getAs<DenseI64ArrayAttr>("program")
                                                     : DenseI64ArrayAttr();
  return program && program.size() == kernels::elementwiseInstructionWidth && kernel.getBuffers().size() == 2 &&
         program[0] == int64_t(ElementwiseOp::Copy) && kernel.getTypes()[0] == kernel.getTypes()[1];
}
