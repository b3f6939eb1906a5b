//===- Meaning.cpp - whether commands do what their reference ops say ------===//
#include "compiler/check/meaning/Meaning.h"

#include "compiler/check/meaning/OpRules.h"
#include "compiler/check/meaning/ReferenceOps.h"
#include "compiler/check/schedule/Effects.h"
#include "core/Error.h"
#include "kernels/KernelRows.h"
#include "runtime/plan/run/Invocations.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ds::check {

namespace {

/// The `train.` op that a kernel runs whole has the kernel's name.
bool runs(const proto::KernelCommand &kernel, const proto::ReferenceOp &op) {
  return op.op() == "train." + kernel.kernel();
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

bool Meaning::isPartOfNorm(const proto::Command &command) {
  return command.has_kernel() && command.reference_size() == 0 && command.kernel().operands_size() >= 2 &&
         command.kernel().kernel() == kernels::kernel<"block_sum_squares">.name;
}

void Meaning::requireOp(const proto::KernelCommand &kernel, const proto::ReferenceOp &op,
                        std::span<const uint32_t> held) const {
  if (!runs(kernel, op))
    throw Mismatch{"kernel " + kernel.kernel() + " is not " + titleOf(op) + ", which it is said to be"};
  requireAttributes(plan_, kernel, op);
  requireOperands(plan_, kernel, op);
  if (kernel.kernel() == kernels::kernel<"global_norm">.name)
    return; // NormRules.h
  requireHeld(op, held, 0, titleOf(op));
}

/// Operands of a call, from the first that is one of the op, hold the values that the op takes.
void Meaning::requireHeld(const proto::ReferenceOp &op, std::span<const uint32_t> held, size_t first,
                          const std::string &title) const {
  for (size_t i = 0; i < size_t(op.operands_size()); ++i)
    if (const uint32_t expected = values_.of(op.operands(int(i))); !mayBe(held[first + i], expected))
      throw Mismatch{"operand " + std::to_string(first + i) + " holds " + values_.name(held[first + i]) + ", but " +
                     title + " takes " + values_.name(expected)};
}

/// Of values that a command makes; nothing is refused where one of them is not known.
void Meaning::requireNamed(const proto::Command &command, std::span<const uint32_t> made) const {
  for (int r = 0; r < command.reference_size(); ++r)
    for (const uint32_t result : opOf(command, r).results())
      if (std::ranges::count(made, Values::unknown) == 0 && std::ranges::count(made, values_.of(result)) == 0)
        throw Mismatch{"it does not compute " + titleOf(opOf(command, r)) +
                       ", as it is said to, of what its operands hold"};
}

std::vector<Meaning::Result> Meaning::resultsOf(const proto::Command &command, std::span<const uint32_t> held) {
  if (isOptimizer(command) || isPartOfNorm(command))
    return std::vector<Result>(held.size()); // verified by parameter (requireUpdate), or byte by byte
  std::string key = std::to_string(held.size()) + " ";
  key.append(reinterpret_cast<const char *>(held.data()), held.size_bytes());
  command.AppendToString(&key);
  if (const auto found = results_.find(key); found != results_.end())
    return found->second;
  try {
    const std::optional<uint32_t> axis = splitAxis(command.kernel(), held);
    return results_.emplace(std::move(key), axis ? resultsOfParts(command, held, *axis) : resultsOfWhole(command, held))
        .first->second;
  } catch (const Error &error) { // a call that its kernel does not take
    throw Mismatch{error.what()};
  }
}

std::vector<Meaning::Result> Meaning::resultsOfWhole(const proto::Command &command, std::span<const uint32_t> held) {
  const proto::KernelCommand &kernel = command.kernel();
  const std::string_view name = kernel.kernel();
  if (name == kernels::kernel<"elementwise">.name)
    return elementwise(command, held);
  std::vector<Result> results(size_t(kernel.operands_size()));
  if (name == kernels::kernel<"increment">.name && !results.empty()) {
    results[0].value = values_.incremented(held[0]);
    return results;
  }
  if (const std::optional<uint32_t> value = moved(command, held)) {
    results[1].value = *value;
    return results;
  }
  if (command.reference_size() == 0 && !closed_)
    return results;
  if (command.reference_size() == 0)
    throw Mismatch{"kernel " + kernel.kernel() + " names no reference op, so nothing says what it should compute"};
  if (const kernels::Expansion *expansion = kernels::expansionOf(plan::invocationOf(kernel)))
    return fused(command, *expansion, held);
  if (command.reference_size() > 1)
    throw Mismatch{"kernel " + kernel.kernel() + " names " + std::to_string(command.reference_size()) +
                   " reference ops; it can be one"};
  const proto::ReferenceOp &op = opOf(command, 0);
  requireOp(kernel, op, held);
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
  const auto requireType = [&](size_t operand, uint32_t variable) {
    if (const proto::Variable &own = plan_.variables(int(variable));
        kernel.operands(int(operand)).dtype() != own.dtype())
      throw Mismatch{"operand " + std::to_string(operand) + " has another element type than " + own.name()};
  };
  requireType(kernels::KernelRow::parameter, parameter);
  Update update;
  std::vector<uint32_t> taken(held.begin(), held.end());
  if (const int clip = clipOperandOf(op); mayTakeOne && clip < op.operands_size()) {
    uint32_t &factor = taken[size_t(variables + clip)];
    const uint32_t expected = values_.of(op.operands(clip));
    if (factor != expected && factor == values_.constant(1, values_.type(expected).dtype))
      update.oneFor = factor = expected;
  }
  requireHeld(op, taken, size_t(variables), "the update of " + name);
  for (uint32_t variable : op.variables()) {
    const bool isPending = delays_.gradientIn(variable).has_value(),
               isGradient = plan_.variables(int(variable)).kind() == proto::Variable::GRADIENT;
    if (isGradient || isPending)
      requireType(kernels::KernelRow::gradient, variable);
    if (isGradient)
      update.added = contributionTo(variable);
    else if (isPending)
      update.pending = variable;
    else if (variable != parameter) {
      requireType(kernels::KernelRow::state + update.state.size(), variable);
      update.state.push_back(variable);
    }
  }
  return update;
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
