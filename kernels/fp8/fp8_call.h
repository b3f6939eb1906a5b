//===- fp8_call.h - the calls of quantize_fp8 and fp8_matmul --------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/Float8.h"

#include <cstdint>

namespace ds::kernels {

/// x [rows, cols] -> q [rows, cols] or, transposed, [cols, rows], and scale.
struct QuantizeFp8Call {
  explicit QuantizeFp8Call(const Call &call);

  /// Its operands.
  enum : size_t { x, q, scale };

  Float8 format;
  bool transposed;
  int64_t rows, cols; ///< of x
  DType dtype;        ///< of x
  CallWorkspace workspace;

  int64_t elements() const { return rows * cols; }
};

/// c [m, n] = a [m, k] b [n, k]^T times their scales, plus a bias.
struct Fp8MatmulCall {
  explicit Fp8MatmulCall(const Call &call);

  /// Its operands; c follows them, behind the bias.
  enum : size_t { a, aScale, b, bScale, bias };

  Float8 aFormat, bFormat;
  bool hasBias;
  size_t c;
  int64_t m, n, k;
  int64_t pieces; ///< as of matmul
  DType dtype;    ///< of bias and c
  CallWorkspace workspace;

  /// The matmul of the numbers that the codes stand for, in float32; with the bias, if there is one and it `takesBias`.
  Invocation product(bool takesBias) const;
};

} // namespace ds::kernels
