//===- EpilogueMeaning.cpp - a product with an epilogue is two things ------===//
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/meaning/ReferenceOps.h"

#include "kernels/ElementwiseProgram.h"
#include "kernels/KernelRows.h"

#include <algorithm>
#include <ranges>
#include <string_view>

namespace ds::check {

namespace {

using kernels::ElementwiseOp;

constexpr const auto &row = kernels::kernel<"matmul">;
constexpr std::string_view epilogueName = row.attributes[row.attribute("epilogue")].name;

} // namespace

bool Meaning::isFusedProduct(const proto::KernelCommand &kernel) {
  const proto::Attribute *epilogue = attributeOf(kernel, epilogueName);
  return kernel.kernel() == row.name && epilogue && !epilogue->text().empty();
}

/// Its first reference op is the product, whose operands come first: then what the product is multiplied with the slope
/// of, or the GELU of the product. The result is what a program of `elementwise` would make of them. That the kernel
/// rounds no product on the way is within what is said of sums in 16 bits.
std::vector<Meaning::Result> Meaning::fusedProduct(const proto::Command &command, std::span<const uint32_t> held) {
  const proto::KernelCommand &kernel = command.kernel();
  const proto::ReferenceOp &op = opOf(command, 0);
  const bool isGradient = attributeOf(kernel, epilogueName)->text() == "gelu_tanh_grad";
  const int more = op.operands_size(); // the operand that the product alone has not
  if (op.results_size() != 1 || kernel.operands_size() < more + 2)
    throw Mismatch{"it is no product with an epilogue of " + titleOf(op)};
  proto::Command product = command;
  auto &operands = *product.mutable_kernel()->mutable_operands();
  const proto::Operand &added = kernel.operands(more), &result = kernel.operands(more + 1);
  operands.erase(operands.begin() + more);
  auto &attributes = *product.mutable_kernel()->mutable_attributes();
  attributes.erase(std::ranges::find(attributes, epilogueName, &proto::Attribute::name));
  requireOp(product, op, held.first(size_t(more)));
  if (added.access() != (isGradient ? proto::Operand::READ : proto::Operand::WRITE) ||
      added.dtype() != result.dtype() || !std::ranges::equal(added.shape(), result.shape()))
    throw Mismatch{"operand " + std::to_string(more) + " is not like the product of " + titleOf(op)};

  const proto::DType narrow = result.dtype(), wide = computedIn(narrow);
  const uint64_t elements = elementsIn(shapeOf(result));
  const uint32_t number = values_.of(op.results(0)), atHand = values_.converted(number, wide);
  const auto apply = [&](ElementwiseOp opcode, std::initializer_list<uint32_t> of) {
    return values_.apply(int64_t(opcode), wide, of, elements);
  };
  std::vector<Result> results(size_t(kernel.operands_size()));
  if (isGradient) {
    const uint32_t slope = apply(ElementwiseOp::GeluTanhSlope, {values_.converted(held[size_t(more)], wide)});
    results[size_t(more) + 1].value = values_.converted(apply(ElementwiseOp::Mul, {atHand, slope}), narrow);
  } else {
    results[size_t(more)].value = values_.converted(apply(ElementwiseOp::GeluTanh, {atHand}), narrow);
    results[size_t(more) + 1].value = number;
  }
  return results;
}

} // namespace ds::check
