//===- FusedMeaning.cpp - a fused kernel is the ops that its row says -------===//
#include "compiler/check/meaning/Meaning.h"

#include "kernels/ElementwiseProgram.h"
#include "kernels/Expansion.h"
#include "kernels/KernelTable.h"
#include "runtime/plan/run/Invocations.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ds::check {

namespace {

using kernels::ElementwiseOp;

/// Numbers of 16 bits are computed with in float32.
proto::DType computedIn(proto::DType dtype) {
  return dtype == proto::DTYPE_BF16 || dtype == proto::DTYPE_F16 ? proto::DTYPE_F32 : dtype;
}

/// The call of a kernel that is one op of a fused one.
proto::KernelCommand callOf(const proto::KernelCommand &fused, const kernels::CallLayout &layout,
                            const kernels::Expansion &expansion, const kernels::ExpandedOp &step) {
  proto::KernelCommand call;
  call.set_kernel(std::string(step.op));
  for (const proto::Attribute &attribute : fused.attributes())
    if (std::ranges::count(expansion.attributes, attribute.name()) == 0)
      *call.add_attributes() = attribute;
  for (const auto *names : {&step.operands, &step.results})
    for (const std::string_view name : *names)
      if (const auto operand = layout.find(name))
        *call.add_operands() = fused.operands(int(*operand));
  return call;
}

/// Whatever elementwise ops of a fused kernel take and make has one shape: nothing broadcasts.
void requireOneShape(const proto::KernelCommand &fused, const kernels::CallLayout &layout,
                     const kernels::Expansion &expansion) {
  std::optional<size_t> first;
  for (const kernels::ExpandedOp &step : expansion.ops)
    for (const auto *names : {&step.operands, &step.results})
      for (const std::string_view name : *names)
        if (const auto operand = layout.find(name); operand && kernels::elementwiseNamed(step.op)) {
          first = first.value_or(*operand);
          if (!std::ranges::equal(fused.operands(int(*operand)).shape(), fused.operands(int(*first)).shape()))
            throw Mismatch{"operands " + std::to_string(*first) + " and " + std::to_string(*operand) + " of kernel " +
                           fused.kernel() + " have different shapes"};
        }
}

bool isUsed(const kernels::Expansion &expansion, std::string_view operand) {
  return std::ranges::any_of(expansion.ops, [&](const kernels::ExpandedOp &step) {
    return std::ranges::count(step.operands, operand) + std::ranges::count(step.results, operand) > 0;
  });
}

} // namespace

const proto::ReferenceOp &Meaning::opNamed(const proto::Command &command, std::string_view kind) const {
  for (int r = 0; r < command.reference_size(); ++r)
    if (opOf(command, r).op() == "train." + std::string(kind))
      return opOf(command, r);
  throw Mismatch{"kernel " + command.kernel().kernel() + " computes train." + std::string(kind) +
                 ", but names no such reference op"};
}

/// What one op of a fused kernel makes; `made` gets its operands as float32, if it reads them so.
std::vector<uint32_t> Meaning::resultsOfStep(const proto::Command &command, const proto::KernelCommand &step,
                                             std::vector<uint32_t> operands, std::vector<uint32_t> &made) {
  const auto opcode = kernels::elementwiseNamed(step.kernel());
  const proto::ReferenceOp *op = opcode ? nullptr : &opNamed(command, step.kernel());
  if (const auto wanted = size_t(opcode ? kernels::elementwiseArity(*opcode) : op->operands_size());
      operands.size() != wanted)
    throw Mismatch{"kernel " + command.kernel().kernel() + " has " + std::to_string(operands.size()) +
                   " operands for train." + step.kernel() + ", which takes " + std::to_string(wanted)};
  if (op) {
    requireOp(step, *op, operands);
    std::vector<uint32_t> results;
    for (const uint32_t result : op->results())
      results.push_back(values_.of(result));
    return results;
  }
  const proto::DType wide = computedIn(command.kernel().operands(0).dtype());
  uint64_t elements = 0;
  for (uint32_t &operand : operands) {
    operand = values_.converted(operand, wide);
    elements = std::max(elements, values_.type(operand).elements.value_or(0));
  }
  made.insert(made.end(), operands.begin(), operands.end());
  return {*opcode == ElementwiseOp::Cast ? operands[0] : values_.apply(int64_t(*opcode), wide, operands, elements)};
}

/// Follows one op after another, as if each were a command. Each reference op that is named must be among them.
std::vector<Meaning::Result> Meaning::fused(const proto::Command &command, const kernels::Expansion &expansion,
                                            std::span<const uint32_t> held) {
  const proto::KernelCommand &kernel = command.kernel();
  const kernels::Invocation call = plan::invocationOf(kernel);
  const kernels::CallLayout layout(call);
  requireOneShape(kernel, layout, expansion);
  std::map<std::string_view, uint32_t> values; // by the expansion's names
  for (size_t i = 0; i < layout.size(); ++i)
    values[layout[i].name] = held[i];
  std::vector<uint32_t> made;
  for (const kernels::ExpandedOp &step : expansion.ops) {
    std::vector<uint32_t> operands;
    for (const std::string_view name : step.operands)
      if (const auto value = values.find(name); value != values.end())
        operands.push_back(value->second);
    const std::vector<uint32_t> results =
        resultsOfStep(command, callOf(kernel, layout, expansion, step), operands, made);
    for (size_t r = 0; r < step.results.size(); ++r) {
      uint32_t &value = values[step.results[r]];
      made.push_back(value = results.at(r));
      if (const auto operand = layout.find(step.results[r]))
        made.push_back(value = values_.converted(value, kernel.operands(int(*operand)).dtype()));
    }
  }
  for (size_t i = 0; i < layout.size(); ++i)
    if (!isUsed(expansion, layout[i].name))
      throw Mismatch{"its operand " + std::to_string(i) + " (" + std::string(layout[i].name) +
                     ") has no part in what it computes"};
  requireNamed(command, made);
  std::vector<Result> results(size_t(kernel.operands_size()));
  for (size_t i = 0; i < layout.size(); ++i)
    if (layout[i].isWritten())
      results[i].value = values[layout[i].name];
  return results;
}

} // namespace ds::check
