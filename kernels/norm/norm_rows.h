//===- norm_rows.h - rows that are normalized each by itself -------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/Numbers.h"
#include "kernels/norm/norm_grad_pieces.h"

#include <initializer_list>
#include <span>

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
    y = call.hasOperand("y") ? call["y"] : 0;
    sum = call.hasOperand("sum") ? call["sum"] : 0;
    rounded = call.hasOperand("rounded") ? call["rounded"] : 0;
    call.require(!sum || !isNarrowFloat(dtype) || rounded, "a sum of 16 bits must be written rounded, too");
    call.require(sum || !rounded, "attribute 'rounded' is for calls with a residual");
  }

  /// Of a norm: the row that is normalized, x's or, with a residual, that of their sum as it is rounded, which is
  /// written first.
  template <typename T> const T *normalizedRow(std::span<void *const> operands, int64_t row) const {
    const T *x = static_cast<const T *>(operands[0]) + row * cols;
    if (!residual)
      return x;
    const T *added = static_cast<const T *>(operands[residual]) + row * cols;
    T *both = static_cast<T *>(operands[sum]) + row * cols;
    for (int64_t i = 0; i < cols; ++i)
      both[i] = x[i] + added[i];
    if (!rounded)
      return both;
    T *narrow = static_cast<T *>(operands[rounded]) + row * cols;
    const auto round = [&](auto zero) {
      for (int64_t i = 0; i < cols; ++i)
        narrow[i] = T(decltype(zero)(both[i]));
    };
    isNarrowFloat(roundsTo) ? withNarrowFloat(roundsTo, round) : round(T());
    return narrow;
  }

  int64_t pieces() const { return piecesOf(rows, normGradRowsPerPiece); } ///< of a gradient, on a CPU

  int64_t rows = 0, cols = 0;
  DType dtype;
  DType roundsTo = dtype;      ///< of a norm's rounded sum: the 16 bits for which float32 stands on a CPU
  CallWorkspace workspace;     ///< of a gradient
  size_t dx = 0;               ///< of a gradient: the operand; dgamma and dbeta are behind it
  size_t residual = 0;         ///< the operand that is added to x, or to dx of a gradient, 0: none
  size_t y = 0;                ///< of a norm: the operand; statistics are behind it
  size_t sum = 0, rounded = 0; ///< of a norm with a residual
  double epsilon = 0;
};

} // namespace ds::kernels
