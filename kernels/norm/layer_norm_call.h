//===- layer_norm_call.h - the calls of layer_norm and layer_norm_grad ---===//
#pragma once

#include "kernels/Call.h"
#include "kernels/KernelSignatures.h"

namespace ds::kernels {

/// x, y [rows, cols] (leading dimensions folded into rows); gamma, beta [cols]; mean, rstd [rows].
struct LayerNormCall {
  explicit LayerNormCall(const Call &call) {
    call.expectOperands(6);
    shapes(call, 0, 1);
    call.expectLike(2, 1);
    call.expectLike(3, 0);
    perRow(call, 4);
    perRow(call, 5);
    epsilon = call.number("epsilon");
    call.require(epsilon >= 0, "attribute 'epsilon' must not be negative");
  }

  void shapes(const Call &call, size_t x, size_t gamma) {
    call.expectFloat(x);
    call.require(!call.shape(x).empty(), "x must have at least one dimension");
    cols = call.shape(x).back();
    call.expectDType(gamma, call.dtype(x));
    call.expectShape(gamma, {cols});
    rows = 1;
    for (size_t d = 0; d + 1 < call.shape(x).size(); ++d)
      rows *= call.shape(x)[d];
    dtype = call.dtype(x);
  }

  void perRow(const Call &call, size_t operand) const {
    call.expectDType(operand, dtype);
    call.require(call.elements(operand) == rows, "operand " + std::to_string(operand) + " must have " +
                                                     std::to_string(rows) + " elements, one a row, not shape " +
                                                     toString(call.shape(operand)));
  }

  int64_t rows = 0, cols = 0;
  DType dtype = DType::F32;
  double epsilon = 0;

protected:
  LayerNormCall() = default;
};

/// dy, x, gamma, mean, rstd, dx, dgamma, dbeta, workspace.
struct LayerNormGradCall : LayerNormCall {
  explicit LayerNormGradCall(const Call &call, Device device = Device::Cpu) {
    call.expectOperands(9);
    shapes(call, 1, 2);
    call.expectLike(0, 1);
    perRow(call, 3);
    perRow(call, 4);
    call.expectLike(5, 1);
    call.expectLike(6, 2);
    call.expectLike(7, 2);
    call.expectDType(8, DType::U8);
    pieces = piecesOf(rows, normGradRowsPerPiece);
    const TensorType operands[] = {{dtype, {rows, cols}}, {dtype, {rows, cols}}, {dtype, {cols}}};
    const int64_t needed = workspaceBytes("layer_norm_grad", operands, {.device = device});
    call.require(call.elements(8) >= needed,
                 "workspace must have " + std::to_string(needed) + " bytes, not " + std::to_string(call.elements(8)));
  }

  int64_t pieces = 0; ///< of normGradRowsPerPiece rows, on a CPU
};

} // namespace ds::kernels
