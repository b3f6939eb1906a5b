//===- MayOverwrite.h - results that a kernel may write over an operand ------===//
//
// Shared by the pass that lets results take the bytes of operands and by the checker, which refuses others. A kernel is
// named here if on every device, and in its reference, each element of the operand is read for the last time before the
// same element of the result is written.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <string_view>

namespace ds::kernels {

/// Whether result `result` of a call may be the same memory as `operand`, which it reads; both count all operands. They
/// must be of one type and one shape, and none of the call's other operands may touch that memory.
inline bool mayOverwrite(std::string_view kernel, size_t operand, size_t result) {
  if (kernel == "elementwise") // an element of a result is written when all that it and others are made of is read
    return true;
  if (kernel == "cross_entropy_grad") // dlogits over logits
    return operand == 0 && result == 4;
  if (kernel == "layer_norm_grad") // dx over dy or x, once the sums over rows have read them
    return operand < 2 && result == 5;
  if (kernel == "rms_norm_grad")
    return operand < 2 && result == 4;
  return false;
}

} // namespace ds::kernels
