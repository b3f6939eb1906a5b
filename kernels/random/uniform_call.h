//===- uniform_call.h - the call of uniform ------------------------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/Philox.h"

#include <cstdint>

namespace ds::kernels {

struct UniformCall {
  explicit UniformCall(const Call &call)
      : elements(call.elements("y")), dtype(call.dtype()), opId(uint32_t(call.integerIn("op_id", 0, UINT32_MAX))) {}

  int64_t elements;
  DType dtype;
  uint32_t opId;
};

} // namespace ds::kernels
