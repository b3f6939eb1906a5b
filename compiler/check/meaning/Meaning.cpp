//===- Meaning.cpp - whether commands do what their reference ops say ------===//
#include "compiler/check/Meaning.h"

#include "kernels/ElementwiseProgram.h"
#include "kernels/KernelRows.h"

#include <algorithm>
#include <string_view>

namespace ds::check {

namespace {

using kernels::ElementwiseOp;

std::string titleOf(const proto::ReferenceOp &op) { return op.op() + (op.name().empty() ? "" : " " + op.name()); }

template <typename Message> const proto::Attribute *attributeOf(const Message &message, std::string_view name) {
  for (const proto::Attribute &attribute : message.attributes())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

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

bool runsKernel(const proto::KernelCommand &kernel, const kernels::KernelRow &row) {
  return kernel.kernel() == row.name;
}

/// What the reference program calls an attribute of a kernel.
std::string_view referenceName(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> others[] = {{"perm", "permutation"},
                                                                      {"adam_w_mode", "decoupled"},
                                                                      {"trans_a", "transpose_lhs"},
                                                                      {"trans_b", "transpose_rhs"}};
  for (auto [kernel, reference] : others)
    if (kernel == name)
      return reference;
  return name;
}

/// Flags that the reference program leaves out where they are off.
bool isFlag(std::string_view name) {
  constexpr std::string_view flags[] = {"transpose_lhs", "transpose_rhs", "causal",    "nesterov", "last",
                                        "smallest",      "exclusive",     "decoupled", "reverse"};
  return std::ranges::find(flags, name) != std::end(flags);
}

/// How a norm's sums are cut into blocks: a matter of how gradients are shared out, not of what is computed.
bool isWhereToCut(std::string_view name) { return name == "block" || name == "blocks"; }

bool sameValue(const proto::Attribute &a, const proto::Attribute &b) {
  proto::Attribute x = a, y = b;
  x.clear_name();
  y.clear_name();
  x.clear_setting();
  y.clear_setting();
  return x.SerializeAsString() == y.SerializeAsString();
}

/// The `train.` op that a kernel runs whole has the kernel's name.
bool runs(const proto::KernelCommand &kernel, const proto::ReferenceOp &op) {
  return op.op() == "train." + kernel.kernel();
}

} // namespace

Meaning::Meaning(const proto::Plan &plan) : plan_(plan), values_(plan) {
  for (const proto::ReferenceOp &op : plan.reference().ops()) {
    if (op.function() == "update")
      for (uint32_t variable : op.variables())
        updates_[variable].push_back(&op);
    if ((op.op() == "train.accumulate" || op.op() == "train.store") && op.function() == "microbatch" &&
        op.variables_size() == 1)
      contributions_.try_emplace(op.variables(0), values_.of(op.operands(0)));
  }
}

void Meaning::requireAttributes(const proto::KernelCommand &kernel, const proto::ReferenceOp &op) const {
  for (const proto::Attribute &attribute : kernel.attributes()) {
    const std::string_view name = referenceName(attribute.name());
    const proto::Attribute *said = attributeOf(op, name);
    if (isWhereToCut(name))
      continue;
    if (said ? !sameValue(attribute, *said) : isFlag(name) && attribute.integer() != 0)
      throw Mismatch{"its attribute " + attribute.name() + " is not that of " + titleOf(op)};
  }
}

/// Operands of a kernel are those of its op, then its results, then a workspace.
void Meaning::requireOp(const proto::Command &command, const proto::ReferenceOp &op,
                        std::span<const uint32_t> held) const {
  const proto::KernelCommand &kernel = command.kernel();
  if (!runs(kernel, op))
    throw Mismatch{"kernel " + kernel.kernel() + " is not " + titleOf(op) + ", which it is said to be"};
  requireAttributes(kernel, op);
  for (int i = 0; i < op.operands_size() + op.results_size(); ++i) {
    if (i >= kernel.operands_size())
      throw Mismatch{"it has fewer operands than " + titleOf(op)};
    const bool isResult = i >= op.operands_size();
    if (kernel.operands(i).access() != (isResult ? proto::Operand::WRITE : proto::Operand::READ))
      throw Mismatch{"operand " + std::to_string(i) + " is " + (isResult ? "a result" : "an input") + " of " +
                     titleOf(op) + ", but is not said to be " + (isResult ? "written" : "read")};
    if (isResult || mayBe(held[size_t(i)], values_.of(op.operands(i))))
      continue;
    throw Mismatch{"operand " + std::to_string(i) + " holds " + values_.name(held[size_t(i)]) + ", but " + titleOf(op) +
                   " takes " + values_.name(values_.of(op.operands(i)))};
  }
}

bool Meaning::isOnly(const proto::KernelCommand &kernel, int64_t opcode, int operands) {
  const auto *program = elementwiseAttribute(kernel, "program");
  return runsKernel(kernel, kernels::kernel<"elementwise">) && program &&
         program->integers().values_size() == kernels::elementwiseInstructionWidth &&
         program->integers().values(0) == opcode && kernel.operands_size() == operands;
}

bool Meaning::isCopy(const proto::KernelCommand &kernel) { return isOnly(kernel, int64_t(ElementwiseOp::Copy), 2); }

bool Meaning::isAddition(const proto::KernelCommand &kernel) { return isOnly(kernel, int64_t(ElementwiseOp::Add), 3); }

/// Runs the little program on values instead of numbers.
std::vector<Meaning::Result> Meaning::elementwise(const proto::Command &command, std::span<const uint32_t> held) {
  const proto::KernelCommand &kernel = command.kernel();
  const auto *program = elementwiseAttribute(kernel, "program"), *constants = elementwiseAttribute(kernel, "constants"),
             *outputs = elementwiseAttribute(kernel, "results");
  std::vector<Result> results(size_t(kernel.operands_size()));
  if (!program || !constants || !outputs || outputs->integers().values_size() > kernel.operands_size())
    return results; // the kernel refuses it
  const auto &code = program->integers().values();
  const int inputs = kernel.operands_size() - outputs->integers().values_size();
  std::vector<uint32_t> registers(held.begin(), held.begin() + inputs);
  for (int at = 0; at + kernels::elementwiseInstructionWidth <= code.size();
       at += kernels::elementwiseInstructionWidth) {
    const auto op = ElementwiseOp(code[at]);
    std::vector<uint32_t> operands;
    for (int i = 0; i < kernels::elementwiseArity(op); ++i)
      operands.push_back(code[at + 2 + i] >= 0 && size_t(code[at + 2 + i]) < registers.size()
                             ? registers[size_t(code[at + 2 + i])]
                             : Values::unknown);
    const int64_t index = code[at + 2];
    if (op != ElementwiseOp::Constant)
      registers.push_back(values_.apply(code[at], code[at + 1], operands));
    else
      registers.push_back(index >= 0 && index < constants->numbers().values_size()
                              ? values_.constant(rounded(constants->numbers().values(int(index)), code[at + 1]))
                              : Values::unknown);
  }
  for (int i = 0; i < outputs->integers().values_size(); ++i)
    if (const int64_t from = outputs->integers().values(i); from >= 0 && size_t(from) < registers.size())
      results[size_t(inputs + i)].value = registers[size_t(from)];
  for (int r = 0; r < command.reference_size(); ++r) {
    const proto::ReferenceOp &op = opOf(command, r);
    if (op.results_size() == 1 && std::ranges::count(registers, Values::unknown) == 0 &&
        std::ranges::find(registers, values_.of(op.results(0))) == registers.end() &&
        values_.of(op.results(0)) != Values::unknown)
      throw Mismatch{"it does not compute " + titleOf(op) + ", as it is said to, of what its operands hold"};
  }
  return results;
}

std::vector<Meaning::Result> Meaning::resultsOf(const proto::Command &command, std::span<const uint32_t> held) {
  const proto::KernelCommand &kernel = command.kernel();
  std::vector<Result> results(size_t(kernel.operands_size()));
  const bool isElementwise = runsKernel(kernel, kernels::kernel<"elementwise">);
  const bool hasEffect = command.reference_size() == 1 && opOf(command, 0).results_size() == 0;
  if (isElementwise && hasEffect && opOf(command, 0).op() == "train.accumulate") {
    uint32_t added = values_.of(opOf(command, 0).operands(0));
    if (!isAddition(kernel))
      throw Mismatch{"it does not add, as " + titleOf(opOf(command, 0)) + " does"};
    const proto::Operand &sum = kernel.operands().at(kernel.operands_size() - 1); // behind the two inputs
    const auto isTarget = [&](int input) {
      return kernel.operands(input).buffer() == sum.buffer() &&
             kernel.operands(input).byte_offset() == sum.byte_offset();
    };
    if (isTarget(0) == isTarget(1))
      throw Mismatch{"it does not add to what it writes, as " + titleOf(opOf(command, 0)) + " does"};
    const uint32_t term = held[isTarget(0) ? 1 : 0];
    if (plan_.roles_size() > 1 && term > Values::other && values_.addUp({&term, 1}, added, /*whole=*/false))
      added = term; // a part, of a parameter that other roles use too; the optimizer asks for the whole
    if (!mayBe(term, added))
      throw Mismatch{"it adds " + values_.name(term) + ", but " + titleOf(opOf(command, 0)) + " adds " +
                     values_.name(added)};
    results.back() = {values_.variable(opOf(command, 0).variables(0)), added};
    return results;
  }
  if (isElementwise) {
    results = elementwise(command, held);
    if (!hasEffect || results.empty() || opOf(command, 0).variables_size() == 0)
      return results;
    const proto::ReferenceOp &op = opOf(command, 0);
    if (op.op() != "train.store") { // an average of what is there and what is new
      results.back() = {values_.variable(op.variables(0)), Values::unknown};
      return results;
    }
    if (!mayBe(results.back().value, values_.of(op.operands(0))))
      throw Mismatch{"it stores " + values_.name(results.back().value) + ", but " + titleOf(op) + " stores " +
                     values_.name(values_.of(op.operands(0)))};
    results.back() = {values_.of(op.operands(0)), values_.of(op.operands(0))};
    return results;
  }
  if (constexpr auto &increment = kernels::kernel<"increment">; runsKernel(kernel, increment) && !results.empty()) {
    constexpr size_t step = increment.operand("step");
    results[step].value = values_.incremented(held[step]);
    return results;
  }
  if (command.reference_size() == 0 || hasEffect || command.reference_size() > 1)
    return results; // an optimizer, which is verified by parameter
  const proto::ReferenceOp &op = opOf(command, 0);
  if (runsKernel(kernel, kernels::kernel<"global_norm">) && runs(kernel, op) && op.results_size() == 1 &&
      !results.empty() && kernel.operands_size() != op.operands_size() + 1) {
    results.back().value = values_.of(op.results(0)); // of other pieces of the same gradients, on several ranks
    return results;
  }
  requireOp(command, op, held);
  for (int r = 0; r < op.results_size(); ++r)
    results[size_t(op.operands_size() + r)].value = values_.of(op.results(r));
  return results;
}

Meaning::Update Meaning::requireUpdate(const proto::Command &command, uint32_t parameter,
                                       std::span<const uint32_t> held) const {
  const proto::KernelCommand &kernel = command.kernel();
  if (plan_.reference().ops_size() == 0)
    return {}; // a plan by hand that says nothing to verify
  const std::string &name = plan_.variables(int(parameter)).name();
  if (plan_.variables(int(parameter)).kind() != proto::Variable::PARAMETER)
    throw Mismatch{"it updates " + name + ", which is no parameter"};
  const auto updates = updates_.find(parameter);
  for (size_t u = 0; updates != updates_.end() && u < updates->second.size(); ++u) {
    const proto::ReferenceOp &op = *updates->second[u];
    if (!runs(kernel, op))
      continue;
    requireAttributes(kernel, op);
    const int variables = op.variables_size();
    if (kernel.operands_size() != variables + op.operands_size())
      throw Mismatch{"it has " + std::to_string(kernel.operands_size()) + " operands, not those of " + titleOf(op)};
    for (int i = 0; i < variables; ++i) {
      const bool isRead = i == int(kernels::KernelRow::gradient);
      if (kernel.operands(i).access() != (isRead ? proto::Operand::READ : proto::Operand::READ_WRITE))
        throw Mismatch{"operand " + std::to_string(i) + " is not said to be " +
                       (isRead ? "read alone" : "read and written") + ", as an update does"};
    }
    for (int i = 0; i < op.operands_size(); ++i)
      if (const uint32_t scalar = held[size_t(variables + i)]; !mayBe(scalar, values_.of(op.operands(i))))
        throw Mismatch{"operand " + std::to_string(variables + i) + " holds " + values_.name(scalar) +
                       ", but the update of " + name + " takes " + values_.name(values_.of(op.operands(i)))};
    Update update;
    for (uint32_t variable : op.variables())
      if (plan_.variables(int(variable)).kind() == proto::Variable::GRADIENT)
        update.added = contributionTo(variable);
      else if (variable != parameter)
        update.state.push_back(variable);
    return update;
  }
  throw Mismatch{"the reference program has no " + kernel.kernel() + " of " + name};
}

uint32_t Meaning::gradientOf(uint32_t parameter) const {
  if (const auto updates = updates_.find(parameter); updates != updates_.end())
    for (const proto::ReferenceOp *op : updates->second)
      for (uint32_t variable : op->variables())
        if (plan_.variables(int(variable)).kind() == proto::Variable::GRADIENT)
          return contributionTo(variable);
  return Values::unknown;
}

uint32_t Meaning::contributionTo(uint32_t variable) const {
  const auto found = contributions_.find(variable);
  return found == contributions_.end() ? Values::unknown : found->second;
}

} // namespace ds::check
