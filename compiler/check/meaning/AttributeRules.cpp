//===- AttributeRules.cpp - a kernel's attributes are those of its op -----===//
#include "compiler/check/meaning/AttributeRules.h"

#include "compiler/check/meaning/Mismatch.h"
#include "compiler/check/meaning/ReferenceOps.h"
#include "kernels/KernelTable.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace ds::check {

namespace {

/// Attributes of ops that kernels do not have, because the shapes and types of the results say the same, which
/// OperandRules.cpp compares: padding at the high end, the shape that a gradient has, the length of a slice, how many
/// are largest, that a sum is not rounded to bfloat16, and how many heads are the query's.
constexpr std::string_view saidByResults[] = {"high", "shape", "sizes", "k", "wide", "element_type", "heads"};

/// Flags that the reference program leaves out where they are off.
constexpr std::string_view flags[] = {"trans_a",   "trans_b",     "causal",  "nesterov",        "last", "smallest",
                                      "exclusive", "adam_w_mode", "reverse", "bias_correction", "bshd", "transposed"};

bool isIn(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool sameValue(const proto::Attribute &a, const proto::Attribute &b) {
  proto::Attribute x = a, y = b;
  x.clear_name();
  y.clear_name();
  x.clear_setting();
  y.clear_setting();
  return x.SerializeAsString() == y.SerializeAsString();
}

/// Neither off nor empty.
bool isOn(const proto::Attribute &attribute) {
  return attribute.integer() != 0 || attribute.number() != 0 || !attribute.text().empty();
}

/// Whether a kernel may have an attribute that its op lacks.
bool isAllowed(const proto::Plan &plan, std::string_view kernel, const proto::Attribute &attribute) {
  const std::string_view name = attribute.name();
  if (isIn(flags, name) || name == "epilogue" || name == "dbias")
    return !isOn(attribute); // off, as where an op does not say it
  if (name == "bias" || name == "mask" || name == "cycled" || name == "residual")
    return true; // says whether an operand is there; the kernel's row and the op's operands decide that
  const bool isProduct = kernels::isProduct(kernel);
  if (isProduct && name == "pieces")
    return attribute.integer() == int64_t(plan.machine().threads()); // one order of sums for all products of a plan
  if (isProduct && name == "tf32")
    return plan.machine().device() == "cuda"; // a precision of the configuration, where a device has it
  if (kernel == "block_sum_squares" && name == "block")
    return attribute.integer() == wholeBlock;
  return kernel == "global_norm" && name == "blocks"; // NormRules.cpp compares them with the partial sums
}

} // namespace

void requireAttributes(const proto::Plan &plan, const proto::KernelCommand &kernel, const proto::ReferenceOp &op) {
  for (const proto::Attribute &attribute : kernel.attributes()) {
    const proto::Attribute *said = attributeOf(op, attribute.name());
    const bool isNorm = kernel.kernel() == "global_norm"; // of parts of the blocks that the op has
    if (said && !isNorm ? !sameValue(attribute, *said) : !isAllowed(plan, kernel.kernel(), attribute))
      throw Mismatch{"its attribute " + attribute.name() + " is not that of " + titleOf(op)};
  }
  for (const proto::Attribute &said : op.attributes()) {
    const auto isSame = [&](const proto::Attribute &own) { return own.name() == said.name(); };
    const bool isMissing = std::ranges::none_of(kernel.attributes(), isSame);
    if (isMissing && !isIn(saidByResults, said.name()) && !(isIn(flags, said.name()) && !isOn(said)))
      throw Mismatch{"it lacks attribute " + said.name() + " of " + titleOf(op)};
  }
}

} // namespace ds::check
