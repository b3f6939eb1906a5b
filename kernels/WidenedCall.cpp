#include "kernels/WidenedCall.h"

#include "kernels/KernelTable.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ds::kernels {

bool hasNarrowFloats(const Invocation &invocation) {
  return std::ranges::any_of(invocation.operands,
                             [](const TensorType &operand) { return isNarrowFloat(operand.dtype); });
}

bool isWidened(const Invocation &invocation) {
  const KernelRow *row = findKernel(invocation.kernel);
  if (!row || !row->computes() || !hasNarrowFloats(invocation))
    return false;
  const CallLayout layout(invocation);
  std::optional<DType> asItIs; // the call's own type, where its first operand names that
  for (size_t i = 0; i < layout.size(); ++i) {
    const DType dtype = invocation.operands[i].dtype;
    const OperandTypes &types = layout[i].types;
    if (!isNarrowFloat(dtype) || (types.own && dtype == asItIs))
      continue;
    if (!types.names(dtype))
      return true;
    if (types.own && !asItIs)
      asItIs = dtype;
  }
  return false;
}

WidenedCall::WidenedCall(const Invocation &invocation) : call(invocation) {
  constexpr int64_t alignment = 64;
  const CallLayout layout(invocation);
  call.operands.resize(layout.size());
  for (size_t i = 0; i < layout.size(); ++i) {
    TensorType &operand = call.operands[i];
    if (!isNarrowFloat(operand.dtype))
      continue;
    const DType dtype = std::exchange(operand.dtype, DType::F32);
    const int64_t elements = elementCount(operand.shape);
    copies.push_back({i, dtype, elements, bytes, layout[i].isRead(), layout[i].isWritten()});
    bytes += (elements * int64_t(sizeof(float)) + alignment - 1) / alignment * alignment;
  }
}

void WidenedCall::leaveRestOf(int64_t workspace) {
  if (workspace > bytes)
    call.operands.push_back({DType::U8, {workspace - bytes}});
}

} // namespace ds::kernels
