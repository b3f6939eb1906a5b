//===- ElementwiseMeaning.cpp - elementwise programs are run on values -----===//
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/meaning/ReferenceOps.h"

#include "kernels/KernelRows.h"
#include "kernels/elementwise/elementwise_call.h"
#include "runtime/plan/run/Invocations.h"

#include <algorithm>

namespace ds::check {

namespace {

using kernels::ElementwiseOp;

/// Whether input i is what a kernel's last operand, its result, lies over.
bool isTarget(const proto::KernelCommand &kernel, int input) {
  const proto::Operand &result = kernel.operands(kernel.operands_size() - 1), &operand = kernel.operands(input);
  return operand.buffer() == result.buffer() && operand.byte_offset() == result.byte_offset();
}

/// Whether an elementwise program is this one instruction of each of its inputs.
bool isOnly(const proto::KernelCommand &kernel, ElementwiseOp op) {
  const proto::Attribute *program = attributeOf(kernel, "program"), *results = attributeOf(kernel, "results");
  const int inputs = kernels::elementwiseArity(op);
  if (kernel.kernel() != kernels::kernel<"elementwise">.name || kernel.operands_size() != inputs + 1 || !program ||
      !results || results->integers().values_size() != 1 || results->integers().values(0) != inputs ||
      program->integers().values_size() != kernels::elementwiseInstructionWidth ||
      program->integers().values(0) != int64_t(op))
    return false;
  const auto sources = program->integers().values().begin() + 2;
  for (int input = 0; input < inputs; ++input)
    if (std::count(sources, sources + inputs, input) != 1)
      return false;
  return true;
}

} // namespace

bool Meaning::isCopy(const proto::KernelCommand &kernel) { return isOnly(kernel, ElementwiseOp::Copy); }

bool Meaning::isConversion(const proto::KernelCommand &kernel) { return isOnly(kernel, ElementwiseOp::Cast); }

bool Meaning::isAddition(const proto::KernelCommand &kernel) { return isOnly(kernel, ElementwiseOp::Add); }

bool Meaning::isLinear(const proto::KernelCommand &kernel) {
  const proto::Attribute *program = attributeOf(kernel, "program");
  if (kernel.kernel() != kernels::kernel<"elementwise">.name || !program)
    return kernel.kernel() == kernels::kernel<"transpose">.name;
  constexpr ElementwiseOp linear[] = {ElementwiseOp::Copy, ElementwiseOp::Add, ElementwiseOp::Sub, ElementwiseOp::Neg};
  for (int i = 0; i < program->integers().values_size(); i += kernels::elementwiseInstructionWidth)
    if (std::ranges::count(linear, ElementwiseOp(program->integers().values(i))) == 0)
      return false;
  return true;
}

/// Runs the little program on values instead of numbers.
std::vector<Meaning::Result> Meaning::runProgram(const proto::Command &command, std::span<const uint32_t> held) {
  const proto::KernelCommand &kernel = command.kernel();
  const kernels::Invocation invocation = plan::invocationOf(kernel);
  const kernels::ElementwiseCall call{kernels::Call(invocation)};
  std::vector<uint32_t> registers;
  for (size_t i = 0; i < call.inputs; ++i)
    registers.push_back(values_.broadcast(held[i], call.inputShapes[i], call.shape));
  for (const kernels::ElementwiseInstruction &step : call.program) {
    const auto dtype = proto::DType(step.type);
    std::vector<uint32_t> operands;
    for (int i = 0; i < kernels::elementwiseArity(step.op); ++i)
      operands.push_back(registers[size_t(step.sources[size_t(i)])]);
    registers.push_back(step.op == ElementwiseOp::Constant
                            ? values_.constant(rounded(step.constant, dtype), dtype)
                            : values_.apply(int64_t(step.op), dtype, operands, uint64_t(call.elements)));
  }
  std::vector<Result> results(size_t(kernel.operands_size()));
  for (size_t i = 0; i < call.results.size(); ++i)
    results[call.inputs + i].value = registers[size_t(call.results[i])];
  requireNamed(command, registers);
  return results;
}

/// A sum in place: of two operands of one type, that of the variable, and of which one is what it writes.
Meaning::Result Meaning::accumulated(const proto::KernelCommand &kernel, const proto::ReferenceOp &op,
                                     std::span<const uint32_t> held) {
  if (!isAddition(kernel))
    throw Mismatch{"it does not add, as " + titleOf(op) + " does"};
  if (isTarget(kernel, 0) == isTarget(kernel, 1))
    throw Mismatch{"it does not add to what it writes, as " + titleOf(op) + " does"};
  const proto::Variable &variable = plan_.variables(int(op.variables(0)));
  for (const proto::Operand &operand : kernel.operands())
    if (operand.dtype() != variable.dtype() || elementsIn(shapeOf(operand)) != elementsIn(shapeOf(kernel.operands(2))))
      throw Mismatch{"it does not add elements of " + variable.name() + "'s type one to one, as " + titleOf(op) +
                     " does"};
  uint32_t added = values_.of(op.operands(0));
  const uint32_t term = held[isTarget(kernel, 0) ? 1 : 0];
  if (isPartOf(term, added))
    added = term; // the optimizer asks for the whole
  if (!mayBe(term, added))
    throw Mismatch{"it adds " + values_.name(term) + ", but " + titleOf(op) + " adds " + values_.name(added)};
  return {values_.wholeVariable(op.variables(0)), added}; // what it is added to is looked at micro-batch by micro-batch
}

/// A running statistic, by the formula of train.update_average: momentum * old + (1 - momentum) * correction * new.
Meaning::Result Meaning::averaged(const proto::KernelCommand &kernel, const proto::ReferenceOp &op, uint32_t result) {
  const proto::Variable &variable = plan_.variables(int(op.variables(0)));
  const auto *momentum = attributeOf(op, "momentum"), *correction = attributeOf(op, "correction");
  if (!momentum || !correction || op.operands_size() != 1)
    throw Mismatch{titleOf(op) + " says no momentum or correction"};
  const uint64_t elements = elementsIn(shapeOf(variable));
  const auto scaled = [&](uint32_t value, double factor) {
    const uint32_t terms[] = {value, values_.constant(rounded(factor, variable.dtype()), variable.dtype())};
    return values_.apply(int64_t(ElementwiseOp::Mul), variable.dtype(), terms, elements);
  };
  const uint32_t old = values_.wholeVariable(op.variables(0));
  const uint32_t terms[] = {scaled(old, momentum->number()),
                            scaled(values_.of(op.operands(0)), (1 - momentum->number()) * correction->number())};
  const uint32_t expected = values_.apply(int64_t(ElementwiseOp::Add), variable.dtype(), terms, elements);
  if (!mayBe(result, expected))
    throw Mismatch{"it does not compute " + titleOf(op) + " of " + variable.name() + " and " +
                   values_.name(values_.of(op.operands(0)))};
  if (!isTarget(kernel, 0))
    throw Mismatch{"it does not write over " + variable.name() + ", as " + titleOf(op) + " does"};
  return {old, Values::unknown};
}

std::vector<Meaning::Result> Meaning::elementwise(const proto::Command &command, std::span<const uint32_t> held) {
  const proto::KernelCommand &kernel = command.kernel();
  if (command.reference_size() != 1 || opOf(command, 0).results_size() != 0 || kernel.operands_size() == 0)
    return runProgram(command, held);
  const proto::ReferenceOp &op = opOf(command, 0);
  std::vector<Result> results(size_t(kernel.operands_size()));
  if (op.op() == "train.accumulate") {
    results.back() = accumulated(kernel, op, held);
    return results;
  }
  results = runProgram(command, held);
  if (op.op() == "train.update_average" && op.variables_size() == 1) {
    results.back() = averaged(kernel, op, results.back().value);
    return results;
  }
  if (op.op() != "train.store" || op.variables_size() != 1)
    throw Mismatch{"an elementwise program is not " + titleOf(op) + ", which it is said to be"};
  // A gradient for the next step is what this step has summed, a slice of it, too, and no contribution of its own: it
  // is followed byte by byte (WrittenValues.cpp), to the end of the step. A rank's slice may be all padding, too.
  const bool isPending = delays_.gradientIn(op.variables(0)).has_value();
  const uint32_t stored = results.back().value;
  if (isPending && (stored == Values::other || stored == values_.zero() || stored == values_.padding()))
    return results;
  if (!mayBe(stored, values_.of(op.operands(0))))
    throw Mismatch{"it stores " + values_.name(stored) + ", but " + titleOf(op) + " stores " +
                   values_.name(values_.of(op.operands(0)))};
  results.back() = {values_.of(op.operands(0)), isPending ? uint32_t(Values::unknown) : values_.of(op.operands(0))};
  return results;
}

} // namespace ds::check
