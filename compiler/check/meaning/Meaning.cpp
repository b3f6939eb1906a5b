//===- Meaning.cpp - whether commands do what their reference ops say ------===//
#include "compiler/check/meaning/Meaning.h"

#include "compiler/check/meaning/AttributeRules.h"
#include "compiler/check/meaning/OperandRules.h"
#include "compiler/check/meaning/ReferenceOps.h"
#include "compiler/check/schedule/Effects.h"
#include "kernels/KernelRows.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ds::check {

namespace {

bool runsKernel(const proto::KernelCommand &kernel, const kernels::KernelRow &row) {
  return kernel.kernel() == row.name;
}

/// The `train.` op that a kernel runs whole has the kernel's name.
bool runs(const proto::KernelCommand &kernel, const proto::ReferenceOp &op) {
  return op.op() == "train." + kernel.kernel();
}

bool isOptimizerKernel(const proto::KernelCommand &kernel) {
  const kernels::KernelRow *row = kernels::rowNamed(kernel.kernel());
  return row && row->isOptimizer();
}

} // namespace

Meaning::Meaning(const proto::Plan &plan, bool closed) : plan_(plan), closed_(closed), delays_(plan), values_(plan) {
  for (const proto::ReferenceOp &op : plan.reference().ops()) {
    if (op.function() == "update")
      for (uint32_t variable : op.variables())
        updates_[variable].push_back(&op);
    if ((op.op() == "train.accumulate" || op.op() == "train.store") && op.function() == "microbatch" &&
        op.variables_size() == 1)
      contributions_.try_emplace(op.variables(0), values_.placedAs(op.variables(0), values_.of(op.operands(0))));
  }
}

void Meaning::requireOp(const proto::Command &command, const proto::ReferenceOp &op,
                        std::span<const uint32_t> held) const {
  const proto::KernelCommand &kernel = command.kernel();
  if (!runs(kernel, op))
    throw Mismatch{"kernel " + kernel.kernel() + " is not " + titleOf(op) + ", which it is said to be"};
  requireAttributes(plan_, kernel, op);
  requireOperands(plan_, kernel, op);
  if (runsKernel(kernel, kernels::kernel<"global_norm">))
    return; // NormRules.h
  for (int i = 0; i < op.operands_size(); ++i)
    if (!mayBe(held[size_t(i)], values_.of(op.operands(i))))
      throw Mismatch{"operand " + std::to_string(i) + " holds " + values_.name(held[size_t(i)]) + ", but " +
                     titleOf(op) + " takes " + values_.name(values_.of(op.operands(i)))};
}

std::vector<Meaning::Result> Meaning::resultsOf(const proto::Command &command, std::span<const uint32_t> held) {
  const proto::KernelCommand &kernel = command.kernel();
  if (const std::optional<uint32_t> axis = isOptimizerKernel(kernel) ? std::nullopt : splitAxis(held))
    return resultsOfParts(command, held, *axis);
  if (runsKernel(kernel, kernels::kernel<"elementwise">))
    return elementwise(command, held);
  std::vector<Result> results(size_t(kernel.operands_size()));
  if (constexpr auto &increment = kernels::kernel<"increment">; runsKernel(kernel, increment) && !results.empty()) {
    constexpr size_t step = increment.operand("step");
    results[step].value = values_.incremented(held[step]);
    return results;
  }
  const bool isPartOfNorm = runsKernel(kernel, kernels::kernel<"block_sum_squares">);
  if (isOptimizerKernel(kernel) || (isPartOfNorm && command.reference_size() == 0))
    return results; // verified by parameter (requireUpdate), or byte by byte (NormRules.h)
  if (command.reference_size() == 0 && !closed_)
    return results;
  if (command.reference_size() == 0)
    throw Mismatch{"kernel " + kernel.kernel() + " names no reference op, so nothing says what it should compute"};
  if (isFusedProduct(kernel))
    return fusedProduct(command, held);
  if (isLossWithGradient(kernel))
    return lossWithGradient(command, held);
  if (isNormOfSum(kernel))
    return normOfSum(command, held);
  if (command.reference_size() > 1)
    throw Mismatch{"kernel " + kernel.kernel() + " names " + std::to_string(command.reference_size()) +
                   " reference ops; it can be one"};
  const proto::ReferenceOp &op = opOf(command, 0);
  requireOp(command, op, held);
  for (int r = 0; r < op.results_size(); ++r)
    results[size_t(op.operands_size() + r)].value = values_.of(op.results(r));
  return results;
}

Meaning::Update Meaning::requireUpdate(const proto::Command &command, uint32_t parameter,
                                       std::span<const uint32_t> held, bool mayTakeOne) {
  if (plan_.reference().ops_size() == 0)
    return {}; // by hand
  const std::string &name = plan_.variables(int(parameter)).name();
  if (plan_.variables(int(parameter)).kind() != proto::Variable::PARAMETER)
    throw Mismatch{"it updates " + name + ", which is no parameter"};
  const auto updates = updates_.find(parameter);
  for (size_t u = 0; updates != updates_.end() && u < updates->second.size(); ++u)
    if (runs(command.kernel(), *updates->second[u]))
      return updateOf(command, parameter, *updates->second[u], held, mayTakeOne);
  throw Mismatch{"the reference program has no " + command.kernel().kernel() + " of " + name};
}

/// An update has its op's settings and scalars. Its operands that hold variables are of their types; that they hold the
/// same elements of them is asked byte by byte (GradientRules.h).
Meaning::Update Meaning::updateOf(const proto::Command &command, uint32_t parameter, const proto::ReferenceOp &op,
                                  std::span<const uint32_t> held, bool mayTakeOne) {
  const proto::KernelCommand &kernel = command.kernel();
  const std::string &name = plan_.variables(int(parameter)).name();
  requireAttributes(plan_, kernel, op);
  const int variables = op.variables_size();
  if (kernel.operands_size() != variables + op.operands_size())
    throw Mismatch{"it has " + std::to_string(kernel.operands_size()) + " operands, not those of " + titleOf(op)};
  for (int i = 0; i < variables; ++i) {
    const bool isRead = i == int(kernels::KernelRow::gradient);
    if (kernel.operands(i).access() != (isRead ? proto::Operand::READ : proto::Operand::READ_WRITE))
      throw Mismatch{"operand " + std::to_string(i) + " is not said to be " +
                     (isRead ? "read alone" : "read and written") + ", as an update does"};
    // Parameter, gradient and state have one type: that of the parameter.
    if (kernel.operands(i).dtype() != plan_.variables(int(parameter)).dtype())
      throw Mismatch{"operand " + std::to_string(i) + " has another element type than " + name};
  }
  Update update;
  update.oneFor = requireScalars(kernel, parameter, op, held.subspan(size_t(variables)), mayTakeOne);
  for (uint32_t variable : op.variables())
    if (plan_.variables(int(variable)).kind() == proto::Variable::GRADIENT)
      update.added = contributionTo(variable);
    else if (delays_.gradientIn(variable))
      update.pending = variable;
    else if (variable != parameter)
      update.state.push_back(variable);
  return update;
}

/// The factor of its gradient in whose place the update takes 1, if it does.
std::optional<uint32_t> Meaning::requireScalars(const proto::KernelCommand &kernel, uint32_t parameter,
                                                const proto::ReferenceOp &op, std::span<const uint32_t> held,
                                                bool mayTakeOne) {
  std::optional<uint32_t> oneFor;
  for (int i = 0; i < op.operands_size(); ++i) {
    const uint32_t scalar = held[size_t(i)], expected = values_.of(op.operands(i));
    if (mayBe(scalar, expected))
      continue;
    if (!mayTakeOne || i != clipOperandOf(op) || scalar != values_.constant(1, values_.type(expected).dtype))
      throw Mismatch{"operand " + std::to_string(kernel.operands_size() - op.operands_size() + i) + " holds " +
                     values_.name(scalar) + ", but the update of " + plan_.variables(int(parameter)).name() +
                     " takes " + values_.name(expected)};
    oneFor = expected;
  }
  return oneFor;
}

bool Meaning::isFactor(uint32_t value) const {
  return value > Values::other && std::ranges::any_of(plan_.reference().ops(), [&](const proto::ReferenceOp &op) {
           return isOptimizer(op) && clipOperandOf(op) < op.operands_size() &&
                  value == values_.of(op.operands(clipOperandOf(op)));
         });
}

uint32_t Meaning::gradientOf(uint32_t variable) const {
  if (const auto updates = updates_.find(variable); updates != updates_.end())
    for (const proto::ReferenceOp *op : updates->second)
      for (uint32_t named : op->variables())
        if (plan_.variables(int(named)).kind() == proto::Variable::GRADIENT)
          return contributionTo(named);
  return Values::unknown;
}

bool Meaning::isPartOf(uint32_t value, uint32_t added) const {
  const bool inParts = plan_.roles_size() > 1 || plan_.pipeline().stages_size() > 1;
  return value > Values::other && (value == added || (inParts && values_.addUp({&value, 1}, added, /*whole=*/false)));
}

uint32_t Meaning::contributionTo(uint32_t variable) const {
  const auto found = contributions_.find(variable);
  return found == contributions_.end() ? Values::unknown : found->second;
}

} // namespace ds::check
