//===- norm_rows.h - rows that are normalized each by itself -------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/norm/norm_grad_pieces.h"

#include <initializer_list>

namespace ds::kernels {

/// x [rows, cols], leading dimensions folded into rows, and an element of each statistic for each row.
struct NormRows {
  NormRows(const Call &call, std::initializer_list<const char *> statistics)
      : dtype(call.dtype()), workspace(call.workspace()) {
    const Shape &x = call.shape("x");
    const AxisView view = viewAlong(x, x.size() - 1);
    rows = view.outer;
    cols = view.length;
    for (const char *name : statistics)
      call.require(call.elements(name) == rows, std::string(name) + " must have " + std::to_string(rows) +
                                                    " elements, one a row, not shape " + toString(call.shape(name)));
    if (call.has("epsilon"))
      epsilon = call.number("epsilon");
    call.require(epsilon >= 0, "attribute 'epsilon' must not be negative");
    dx = call.hasOperand("dx") ? call["dx"] : 0;
    residual = call.hasOperand("residual") ? call["residual"] : 0;
  }

  int64_t pieces() const { return piecesOf(rows, normGradRowsPerPiece); } ///< of a gradient, on a CPU

  int64_t rows = 0, cols = 0;
  DType dtype;
  CallWorkspace workspace; ///< of a gradient, as are:
  size_t dx = 0;           ///< the operand; dgamma and dbeta are behind it
  size_t residual = 0;     ///< the operand that is added to dx, 0: none
  double epsilon = 0;
};

} // namespace ds::kernels
