//===- OperandRules.cpp - a kernel's operands are those of its op ---------===//
#include "compiler/check/meaning/OperandRules.h"

#include "compiler/check/meaning/Mismatch.h"
#include "compiler/check/meaning/ReferenceOps.h"
#include "compiler/check/meaning/Values.h"
#include "core/DType.h"
#include "core/Shape.h"
#include "kernels/KernelRows.h"
#include "kernels/KernelTable.h"
#include "runtime/plan/run/Invocations.h"

#include <algorithm>
#include <string>

namespace ds::check {

namespace {

template <typename Message> std::string typeName(const Message &message) {
  return std::string(name(*dtypeFromNumber(message.dtype()))) + " " +
         toString(Shape(message.shape().begin(), message.shape().end()));
}

/// View "rows": norms over the last dimensions see each operand as rows of as many columns as the scale has elements,
/// and statistics as one number a row.
bool hasRows(std::string_view kernel) {
  return kernel == kernels::kernel<"layer_norm">.name || kernel == kernels::kernel<"layer_norm_grad">.name ||
         kernel == kernels::kernel<"rms_norm">.name || kernel == kernels::kernel<"rms_norm_grad">.name;
}

bool isInRows(const proto::Plan &plan, const proto::KernelCommand &kernel, const proto::ReferenceOp &op, int index,
              std::span<const int64_t> shape) {
  const kernels::Invocation call = plan::invocationOf(kernel);
  const kernels::CallLayout layout(call);
  const size_t scale = *layout.find("gamma");
  if (scale >= size_t(op.operands_size()) || size_t(index) >= layout.size())
    return false;
  const auto columns = int64_t(elementsIn(shapeOf(plan.reference().values(int(op.operands(int(scale)))))));
  const auto count = int64_t(elementsIn(shape));
  std::vector<int64_t> expected = {count};
  if (layout[size_t(index)].shape == "[..., cols]")
    expected = {columns ? count / columns : 0, columns};
  return std::ranges::equal(shapeOf(kernel.operands(index)), expected);
}

void requireType(const proto::Plan &plan, const proto::KernelCommand &kernel, const proto::ReferenceOp &op, int index,
                 uint32_t reference) {
  const proto::ReferenceValue &value = plan.reference().values(int(reference));
  const proto::Operand &operand = kernel.operands(index);
  const bool sameShape = std::ranges::equal(operand.shape(), value.shape()) ||
                         (hasRows(kernel.kernel()) && isInRows(plan, kernel, op, index, shapeOf(value)));
  if (operand.dtype() != value.dtype() || !sameShape)
    throw Mismatch{"operand " + std::to_string(index) + " is " + typeName(operand) + ", but " + titleOf(op) + " has " +
                   typeName(value) + " there"};
}

bool isWorkspace(const proto::Operand &operand) {
  return operand.access() == proto::Operand::SCRATCH && operand.dtype() == proto::DTYPE_U8 && operand.shape_size() == 1;
}

} // namespace

void requireOperands(const proto::Plan &plan, const proto::KernelCommand &kernel, const proto::ReferenceOp &op) {
  const int count = op.operands_size() + op.results_size();
  if (kernel.operands_size() < count)
    throw Mismatch{"it has fewer operands than " + titleOf(op)};
  for (int i = 0; i < count; ++i) {
    const bool isResult = i >= op.operands_size();
    if (kernel.operands(i).access() != (isResult ? proto::Operand::WRITE : proto::Operand::READ))
      throw Mismatch{"operand " + std::to_string(i) + " is " + (isResult ? "a result" : "an input") + " of " +
                     titleOf(op) + ", but is not said to be " + (isResult ? "written" : "read")};
    if (kernel.kernel() != kernels::kernel<"global_norm">.name || isResult) // NormRules.cpp knows how its parts are cut
      requireType(plan, kernel, op, i, isResult ? op.results(i - op.operands_size()) : op.operands(i));
  }
  if (kernel.operands_size() > count + 1 ||
      (kernel.operands_size() == count + 1 && !isWorkspace(kernel.operands(count))))
    throw Mismatch{"it has more operands than " + titleOf(op)};
}

} // namespace ds::check
