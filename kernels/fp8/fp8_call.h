//===- fp8_call.h - the calls of quantize_fp8 and fp8_matmul --------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/Float8.h"

#include <cstdint>

namespace ds::kernels {

/// x [rows, cols] -> q [rows, cols] or, transposed, [cols, rows], and its scales.
struct QuantizeFp8Call {
  explicit QuantizeFp8Call(const Call &call);

  /// Its operands.
  enum : size_t { x, q, scale };

  Float8 format;
  bool transposed;
  int64_t rows, cols; ///< of x
  Float8Scales scales;
  DType dtype; ///< of x
  CallWorkspace workspace;

  int64_t elements() const { return rows * cols; }
};

/// c [m, n] = a [m, k] b [n, k]^T times their scales, plus a bias. With blocks c is a sum over these: a partial sum in
/// float32 times both scales, added in their order.
struct Fp8MatmulCall {
  explicit Fp8MatmulCall(const Call &call);

  /// Its operands; c follows them, behind the bias.
  enum : size_t { a, aScale, b, bScale, bias };

  Float8 aFormat, bFormat;
  bool hasBias;
  size_t c;
  int64_t m, n, k;
  Float8Scales aScales, bScales;
  int64_t pieces; ///< as of matmul
  DType dtype;    ///< of bias and c
  CallWorkspace workspace;

  bool isBlocked() const { return aScales.block != Float8Block::Tensor; }
  /// The matmul of the numbers that the codes stand for, in float32; with the bias, if there is one and it `takesBias`.
  Invocation product(bool takesBias) const { return product(takesBias, k); }
  /// That of `depth` columns of each.
  Invocation product(bool takesBias, int64_t depth) const;
};

} // namespace ds::kernels
