//===- ElementwiseMeaning.cpp - elementwise programs are run on values -----===//
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/meaning/ReferenceOps.h"

#include "kernels/ElementwiseProgram.h"
#include "kernels/KernelRows.h"

#include <algorithm>
#include <string_view>

namespace ds::check {

namespace {

using kernels::ElementwiseOp;

/// An attribute of elementwise, by a name that its row has.
struct ElementwiseAttribute {
  std::string_view name;
  consteval ElementwiseAttribute(const char *wanted) : name(wanted) {
    (void)kernels::kernel<"elementwise">.attribute(wanted);
  }
};
const proto::Attribute *elementwiseAttribute(const proto::KernelCommand &kernel, ElementwiseAttribute attribute) {
  return attributeOf(kernel, attribute.name);
}

/// The one that a kernel's last operand, its result, shares bytes with from its first on.
bool isTarget(const proto::KernelCommand &kernel, int input) {
  const proto::Operand &result = kernel.operands(kernel.operands_size() - 1), &operand = kernel.operands(input);
  return operand.buffer() == result.buffer() && operand.byte_offset() == result.byte_offset();
}

bool sameType(const proto::Operand &a, const proto::Operand &b) {
  return a.dtype() == b.dtype() && elementsIn(shapeOf(a)) == elementsIn(shapeOf(b));
}

} // namespace

bool Meaning::isOnly(const proto::KernelCommand &kernel, int64_t opcode, int operands) {
  const auto *program = elementwiseAttribute(kernel, "program");
  return kernel.kernel() == kernels::kernel<"elementwise">.name && program &&
         program->integers().values_size() == kernels::elementwiseInstructionWidth &&
         program->integers().values(0) == opcode && kernel.operands_size() == operands;
}

bool Meaning::isCopy(const proto::KernelCommand &kernel) { return isOnly(kernel, int64_t(ElementwiseOp::Copy), 2); }

bool Meaning::isConversion(const proto::KernelCommand &kernel) {
  return isOnly(kernel, int64_t(ElementwiseOp::Cast), 2);
}

bool Meaning::isAddition(const proto::KernelCommand &kernel) { return isOnly(kernel, int64_t(ElementwiseOp::Add), 3); }

/// Runs the little program on values instead of numbers. That it is one, of operands that broadcast to its results, the
/// kernel's own checks of a call have said (CallRules.h).
std::vector<Meaning::Result> Meaning::runProgram(const proto::Command &command, std::span<const uint32_t> held) {
  const proto::KernelCommand &kernel = command.kernel();
  const auto *program = elementwiseAttribute(kernel, "program"), *constants = elementwiseAttribute(kernel, "constants"),
             *outputs = elementwiseAttribute(kernel, "results");
  std::vector<Result> results(size_t(kernel.operands_size()));
  if (!program || !constants || !outputs || outputs->integers().values_size() > kernel.operands_size() ||
      results.empty())
    return results; // the kernel refuses it
  const auto &code = program->integers().values();
  const int inputs = kernel.operands_size() - outputs->integers().values_size();
  const std::span<const int64_t> shape = shapeOf(kernel.operands(kernel.operands_size() - 1));
  for (int i = 0; i < kernel.operands_size(); ++i)
    if (kernel.operands(i).access() != (i < inputs ? proto::Operand::READ : proto::Operand::WRITE))
      throw Mismatch{"operand " + std::to_string(i) + " is not said to be " + (i < inputs ? "read" : "written") +
                     ", as its program does"};
  std::vector<uint32_t> registers;
  for (int i = 0; i < inputs; ++i)
    registers.push_back(values_.broadcast(held[size_t(i)], shapeOf(kernel.operands(i)), shape));
  for (int at = 0; at + kernels::elementwiseInstructionWidth <= code.size();
       at += kernels::elementwiseInstructionWidth) {
    const auto op = ElementwiseOp(code[at]);
    const auto dtype = proto::DType(code[at + 1]);
    std::vector<uint32_t> operands;
    for (int i = 0; i < kernels::elementwiseArity(op); ++i)
      operands.push_back(code[at + 2 + i] >= 0 && size_t(code[at + 2 + i]) < registers.size()
                             ? registers[size_t(code[at + 2 + i])]
                             : Values::unknown);
    const int64_t index = code[at + 2];
    if (op != ElementwiseOp::Constant)
      registers.push_back(values_.apply(code[at], dtype, operands, elementsIn(shape)));
    else
      registers.push_back(index >= 0 && index < constants->numbers().values_size()
                              ? values_.constant(rounded(constants->numbers().values(int(index)), dtype), dtype)
                              : Values::unknown);
  }
  for (int i = 0; i < outputs->integers().values_size(); ++i)
    if (const int64_t from = outputs->integers().values(i); from >= 0 && size_t(from) < registers.size())
      results[size_t(inputs + i)].value = registers[size_t(from)];
  for (int r = 0; r < command.reference_size(); ++r) {
    const proto::ReferenceOp &op = opOf(command, r);
    if (op.results_size() == 1 && std::ranges::count(registers, Values::unknown) == 0 &&
        std::ranges::find(registers, values_.of(op.results(0))) == registers.end())
      throw Mismatch{"it does not compute " + titleOf(op) + ", as it is said to, of what its operands hold"};
  }
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
  const proto::Operand &sum = kernel.operands(2);
  if (sum.dtype() != variable.dtype() || !sameType(kernel.operands(0), sum) || !sameType(kernel.operands(1), sum) ||
      elementwiseAttribute(kernel, "program")->integers().values(1) != int64_t(variable.dtype()))
    throw Mismatch{"it does not add elements of " + variable.name() + "'s type one to one, as " + titleOf(op) +
                   " does"};
  uint32_t added = values_.of(op.operands(0));
  const uint32_t term = held[isTarget(kernel, 0) ? 1 : 0];
  if (isPartOf(term, added))
    added = term; // the optimizer asks for the whole
  if (!mayBe(term, added))
    throw Mismatch{"it adds " + values_.name(term) + ", but " + titleOf(op) + " adds " + values_.name(added)};
  return {values_.wholeVariable(op.variables(0)), added};
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
  const bool hasEffect = command.reference_size() == 1 && opOf(command, 0).results_size() == 0;
  if (!hasEffect || kernel.operands_size() == 0)
    return runProgram(command, held);
  const proto::ReferenceOp &op = opOf(command, 0);
  if (op.op() == "train.accumulate") {
    std::vector<Result> results(size_t(kernel.operands_size()));
    results.back() = accumulated(kernel, op, held);
    return results;
  }
  std::vector<Result> results = runProgram(command, held);
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
