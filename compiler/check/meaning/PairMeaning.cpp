//===- PairMeaning.cpp - a command that is two reference ops ----------------===//
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/meaning/ReferenceOps.h"

#include "kernels/ElementwiseProgram.h"
#include "kernels/KernelRows.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace ds::check {

namespace {

constexpr const auto &lossAndGradient = kernels::kernel<"cross_entropy_with_grad">;

/// A command of `kernel` with the attributes of `whole` and, in this order, some of its operands.
proto::Command partOf(const proto::Command &whole, std::string_view kernel, std::initializer_list<size_t> operands) {
  proto::Command part;
  part.mutable_kernel()->set_kernel(std::string(kernel));
  *part.mutable_kernel()->mutable_attributes() = whole.kernel().attributes();
  for (const size_t operand : operands)
    *part.mutable_kernel()->add_operands() = whole.kernel().operands(int(operand));
  return part;
}

} // namespace

bool Meaning::isLossWithGradient(const proto::KernelCommand &kernel) { return kernel.kernel() == lossAndGradient.name; }

/// Its reference ops are the cross entropy and the gradient of the same logits and labels, by the log sums that the
/// first makes.
std::vector<Meaning::Result> Meaning::lossWithGradient(const proto::Command &command, std::span<const uint32_t> held) {
  constexpr size_t logits = lossAndGradient.operand("logits"), labels = lossAndGradient.operand("labels"),
                   dloss = lossAndGradient.operand("dloss"), loss = lossAndGradient.operand("loss"),
                   lse = lossAndGradient.operand("lse"), dlogits = lossAndGradient.operand("dlogits");
  if (command.reference_size() != 2 || command.kernel().operands_size() < int(lossAndGradient.operands.size()))
    throw Mismatch{"kernel " + command.kernel().kernel() + " is two reference ops, but names " +
                   std::to_string(command.reference_size())};
  const proto::ReferenceOp &forward = opOf(command, 0), &backward = opOf(command, 1);
  const proto::Command first = partOf(command, kernels::kernel<"cross_entropy">.name, {logits, labels, loss, lse});
  requireOp(first, forward, std::vector<uint32_t>{held[logits], held[labels]});
  proto::Command second =
      partOf(command, kernels::kernel<"cross_entropy_grad">.name, {logits, labels, lse, dloss, dlogits});
  second.mutable_kernel()->mutable_operands(2)->set_access(proto::Operand::READ);
  const uint32_t sums = values_.of(forward.results(1));
  requireOp(second, backward, std::vector<uint32_t>{held[logits], held[labels], sums, held[dloss]});
  std::vector<Result> results(size_t(command.kernel().operands_size()));
  results[loss].value = values_.of(forward.results(0));
  results[lse].value = sums;
  results[dlogits].value = values_.of(backward.results(0));
  return results;
}

/// Whether it is the norm of a sum, which it writes as well.
bool Meaning::isNormOfSum(const proto::KernelCommand &kernel) {
  const proto::Attribute *residual = attributeOf(kernel, "residual");
  return residual && residual->integer() != 0 &&
         (kernel.kernel() == kernels::kernel<"layer_norm">.name || kernel.kernel() == kernels::kernel<"rms_norm">.name);
}

/// Its first reference op is the norm, whose operands come first, then what is added to the first. It writes, behind
/// the norm's results, the sum and, in 16 bits, that rounded: what a program of `elementwise` would make of them, whose
/// ops are the others.
std::vector<Meaning::Result> Meaning::normOfSum(const proto::Command &command, std::span<const uint32_t> held) {
  if (command.reference_size() < 2)
    throw Mismatch{"kernel " + command.kernel().kernel() + " of a sum names " +
                   std::to_string(command.reference_size()) + " reference ops; it is two or more"};
  const proto::ReferenceOp &op = opOf(command, 0);
  for (int r = 1; r < command.reference_size(); ++r)
    if (const std::string &other = opOf(command, r).op(); other != "train.add" && other != "train.cast")
      throw Mismatch{"it is a sum and " + titleOf(op) + ", not " + titleOf(opOf(command, r))};
  proto::Command norm = command;
  proto::KernelCommand &kernel = *norm.mutable_kernel();
  const int residual = op.operands_size(), sum = residual + 1 + op.results_size();
  const auto requireOperand = [&](int index) {
    if (kernel.operands_size() <= index)
      throw Mismatch{"it has fewer operands than a sum and " + titleOf(op)};
  };
  requireOperand(residual == 0 ? kernel.operands_size() : sum);
  const proto::Operand x = kernel.operands(0);
  const int last = computedIn(x.dtype()) == x.dtype() ? sum : sum + 1; // what is rounded
  requireOperand(last);
  const auto requireLike = [&](int index, proto::Operand::Access access, proto::DType dtype) {
    const proto::Operand &one = kernel.operands(index);
    if (one.access() != access || one.dtype() != dtype || !std::ranges::equal(one.shape(), x.shape()))
      throw Mismatch{"operand " + std::to_string(index) + " is not that of a sum and " + titleOf(op)};
  };
  requireLike(residual, proto::Operand::READ, computedIn(x.dtype()));
  requireLike(sum, proto::Operand::WRITE, computedIn(x.dtype()));
  requireLike(last, proto::Operand::WRITE, x.dtype());
  kernel.mutable_operands()->erase(kernel.operands().begin() + sum, kernel.operands().begin() + last + 1);
  kernel.mutable_operands()->erase(kernel.operands().begin() + residual);
  for (const std::string_view flag : {"residual", "rounded"})
    if (const auto at = std::ranges::find(kernel.attributes(), flag, &proto::Attribute::name);
        at != kernel.attributes().end())
      kernel.mutable_attributes()->erase(at);

  std::vector<uint32_t> inputs(held.begin(), held.begin() + residual);
  const uint32_t wide = sumOf(x, held[0], held[size_t(residual)], values_.of(op.operands(0)));
  inputs[0] = values_.converted(wide, x.dtype());
  requireOp(norm, op, inputs);
  std::vector<Result> results(size_t(command.kernel().operands_size()));
  for (int r = 0; r < op.results_size(); ++r)
    results[size_t(residual + 1 + r)].value = values_.of(op.results(r));
  results[size_t(sum)].value = wide;
  results[size_t(last)].value = inputs[0];
  return results;
}

/// The sum of what x holds and `residual`, in the order in which `expected` is made of it, for the bits are the same.
uint32_t Meaning::sumOf(const proto::Operand &x, uint32_t held, uint32_t residual, uint32_t expected) {
  const proto::DType dtype = computedIn(x.dtype());
  const uint32_t wide = values_.converted(held, dtype);
  const auto add = [&](uint32_t lhs, uint32_t rhs) {
    const uint32_t terms[] = {lhs, rhs};
    return values_.apply(int64_t(kernels::ElementwiseOp::Add), dtype, terms, elementsIn(shapeOf(x)));
  };
  const uint32_t turned = add(residual, wide);
  return values_.converted(turned, x.dtype()) == expected ? turned : add(wide, residual);
}

} // namespace ds::check
