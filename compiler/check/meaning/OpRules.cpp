//===- OpRules.cpp - a kernel's attributes and operands are those of its op --===//
#include "compiler/check/meaning/OpRules.h"

#include "compiler/check/meaning/Mismatch.h"
#include "compiler/check/meaning/ReferenceOps.h"
#include "compiler/check/meaning/Values.h"
#include "core/DType.h"
#include "core/Shape.h"
#include "kernels/KernelTable.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace ds::check {

namespace {

using kernels::AttributeRow, kernels::OperandRow;

/// Attributes of ops that kernels do not have, because the shapes and types of the results say the same: padding at the
/// high end, the shape that a gradient has, the length of a slice, how many are largest, that a sum is not rounded to
/// bfloat16, and how many heads are the query's.
constexpr std::string_view saidByResults[] = {"high", "shape", "sizes", "k", "wide", "element_type", "heads"};

bool sameValue(const proto::Attribute &a, const proto::Attribute &b) {
  return a.value_case() == b.value_case() && a.integer() == b.integer() && a.text() == b.text() &&
         std::bit_cast<uint64_t>(a.number()) == std::bit_cast<uint64_t>(b.number()) &&
         a.integers().SerializeAsString() == b.integers().SerializeAsString() &&
         a.numbers().SerializeAsString() == b.numbers().SerializeAsString();
}

/// Neither off nor empty.
bool isOn(const proto::Attribute &attribute) {
  return attribute.integer() != 0 || attribute.number() != 0 || !attribute.text().empty() ||
         attribute.integers().values_size() > 0 || attribute.numbers().values_size() > 0;
}

/// Whether the reference program leaves an attribute out where it is off.
bool mayBeLeftOut(const kernels::KernelRow &row, std::string_view name) {
  return std::ranges::any_of(row.attributes, [&](const AttributeRow &one) {
    return one.name == name && (one.kind == kernels::AttributeKind::Flag || one.optional);
  });
}

/// Whether an attribute says which operands a call reads: those of the op say the same. Of a norm's blocks
/// NormRules.cpp knows how they are cut.
bool saysWhatIsRead(const kernels::KernelRow &row, std::string_view name) {
  return std::ranges::any_of(row.operands, [&](const OperandRow &one) {
    return one.attribute == name && one.value.empty() && one.access == kernels::OperandAccess::Read;
  });
}

/// Whether a kernel may have an attribute that its op lacks.
bool isAllowed(const proto::Plan &plan, const kernels::KernelRow &row, const proto::Attribute &attribute) {
  const std::string_view name = attribute.name();
  if (mayBeLeftOut(row, name) && !isOn(attribute))
    return true;
  const bool isProduct = kernels::isProduct(row.name);
  if (isProduct && name == "pieces")
    return attribute.integer() == int64_t(plan.machine().threads()); // one order of sums for all products of a plan
  if (isProduct && name == "tf32")
    return plan.machine().device() == "cuda"; // a precision of the configuration, where a device has it
  return row.name == "block_sum_squares" && name == "block" && attribute.integer() == wholeBlock;
}

template <typename Message> std::string typeName(const Message &message) {
  return std::string(name(*dtypeFromNumber(message.dtype()))) + " " +
         toString(Shape(message.shape().begin(), message.shape().end()));
}

/// Norms over the last dimensions see [4, 16, 64] as [64, 64]: the row says that what is normalized is one dimension,
/// so the number of elements tells how they lie.
bool seesRows(const kernels::KernelRow &row) { return row.operands[0].shape == "[..., cols]"; }

const kernels::KernelRow &rowOf(const proto::KernelCommand &kernel) {
  if (const kernels::KernelRow *row = kernels::findKernel(kernel.kernel()))
    return *row;
  throw Mismatch{"there is no kernel " + kernel.kernel()};
}

bool isWorkspace(const proto::Operand &operand) {
  return operand.access() == proto::Operand::SCRATCH && operand.dtype() == proto::DTYPE_U8 && operand.shape_size() == 1;
}

} // namespace

void requireAttributes(const proto::Plan &plan, const proto::KernelCommand &kernel, const proto::ReferenceOp &op) {
  const kernels::KernelRow &row = rowOf(kernel);
  for (const proto::Attribute &attribute : kernel.attributes())
    if (const proto::Attribute *said = attributeOf(op, attribute.name());
        !saysWhatIsRead(row, attribute.name()) &&
        !(said ? sameValue(attribute, *said) : isAllowed(plan, row, attribute)))
      throw Mismatch{"its attribute " + attribute.name() + " is not that of " + titleOf(op)};
  for (const proto::Attribute &said : op.attributes())
    if (!attributeOf(kernel, said.name()) && std::ranges::count(saidByResults, said.name()) == 0 &&
        !(mayBeLeftOut(row, said.name()) && !isOn(said)))
      throw Mismatch{"it lacks attribute " + said.name() + " of " + titleOf(op)};
}

void requireOperands(const proto::Plan &plan, const proto::KernelCommand &kernel, const proto::ReferenceOp &op) {
  const kernels::KernelRow &row = rowOf(kernel);
  const int count = op.operands_size() + op.results_size();
  if (kernel.operands_size() < count)
    throw Mismatch{"it has fewer operands than " + titleOf(op)};
  for (int i = row.name == "global_norm" ? op.operands_size() : 0; i < count; ++i) { // NormRules.cpp: how parts are cut
    const uint32_t number = i < op.operands_size() ? op.operands(i) : op.results(i - op.operands_size());
    const proto::ReferenceValue &value = plan.reference().values(int(number));
    const proto::Operand &operand = kernel.operands(i);
    const bool sameShape = seesRows(row) ? elementsIn(shapeOf(operand)) == elementsIn(shapeOf(value))
                                         : std::ranges::equal(operand.shape(), value.shape());
    if (operand.dtype() != value.dtype() || !sameShape)
      throw Mismatch{"operand " + std::to_string(i) + " is " + typeName(operand) + ", but " + titleOf(op) + " has " +
                     typeName(value) + " there"};
  }
  if (kernel.operands_size() > count + 1 ||
      (kernel.operands_size() == count + 1 && !isWorkspace(kernel.operands(count))))
    throw Mismatch{"it has more operands than " + titleOf(op)};
}

} // namespace ds::check
