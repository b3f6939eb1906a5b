//===- rms_norm_call.h - the calls of rms_norm and rms_norm_grad ---------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/KernelSignatures.h"

namespace ds::kernels {

/// x, gamma, y, rrms: x, y [rows, cols] (leading dimensions folded into rows); gamma [cols]; rrms [rows].
struct RmsNormCall {
  explicit RmsNormCall(const Call &call) {
    call.expectOperands(4);
    shapes(call, 0, 1, 3);
    call.expectLike(2, 0);
    epsilon = call.number("epsilon");
    call.require(epsilon >= 0, "attribute 'epsilon' must not be negative");
  }

  int64_t rows = 0, cols = 0;
  DType dtype = DType::F32;
  double epsilon = 0;

protected:
  RmsNormCall() = default;

  void shapes(const Call &call, size_t x, size_t gamma, size_t rrms) {
    call.expectFloat(x);
    call.require(!call.shape(x).empty(), "x must have at least one dimension");
    dtype = call.dtype(x);
    cols = call.shape(x).back();
    rows = 1;
    for (size_t d = 0; d + 1 < call.shape(x).size(); ++d)
      rows *= call.shape(x)[d];
    call.expectDType(gamma, dtype);
    call.expectShape(gamma, {cols});
    call.expectDType(rrms, dtype);
    call.require(call.elements(rrms) == rows, "rrms must have " + std::to_string(rows) +
                                                  " elements, one a row, not shape " + toString(call.shape(rrms)));
  }
};

/// dy, x, gamma, rrms, dx, dgamma, workspace.
struct RmsNormGradCall : RmsNormCall {
  explicit RmsNormGradCall(const Call &call, Device device = Device::Cpu) {
    call.expectOperands(7);
    shapes(call, 1, 2, 3);
    call.expectLike(0, 1);
    call.expectLike(4, 1);
    call.expectLike(5, 2);
    call.expectDType(6, DType::U8);
    pieces = piecesOf(rows, normGradRowsPerPiece);
    const TensorType operands[] = {{dtype, {rows, cols}}, {dtype, {rows, cols}}, {dtype, {cols}}};
    const int64_t needed = workspaceBytes("rms_norm_grad", operands, {.device = device});
    call.require(call.elements(6) >= needed,
                 "workspace must have " + std::to_string(needed) + " bytes, not " + std::to_string(call.elements(6)));
  }

  int64_t pieces = 0; ///< of normGradRowsPerPiece rows, on a CPU
};

} // namespace ds::kernels
