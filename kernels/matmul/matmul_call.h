//===- matmul_call.h - the call of matmul --------------------------------===//
#pragma once

#include "kernels/Call.h"

#include <cstdint>
#include <optional>

namespace ds::kernels {

/// More pieces than any machine has use for; keeps the search for a grid short.
inline constexpr int64_t matmulMaxPieces = 4096;

/// What happens to the product before it is c.
enum class MatmulEpilogue { None, GeluTanh, GeluTanhGrad };

/// c[..., m, n] = op(a)[..., m, k] op(b)[..., k, n] + bias[n].
struct MatmulCall {
  explicit MatmulCall(const Call &call);

  int64_t m = 0, n = 0, k = 0;
  int64_t pieces = 1; ///< c is to be cut into so many, or a multiple
  bool transA = false, transB = false, bias = false;
  DType dtype = DType::F32;           ///< of a and b
  Shape batch;                        ///< leading dimensions of c
  int64_t batches = 1;                ///< their product
  Shape aBatchStrides, bBatchStrides; ///< in matrices, 0 where broadcast; one for each dimension of `batch`
  size_t c = 0;                       ///< the operand c
  MatmulEpilogue epilogue = MatmulEpilogue::None;
  size_t aux = 0; ///< the operand aux, 0: none
  /// The operand that holds the product and the bias before the epilogue.
  size_t product() const { return epilogue == MatmulEpilogue::GeluTanh ? aux : c; }
  bool tf32 = false; ///< float32 factors may be rounded
  std::optional<LibraryAlgorithm> algorithm;
  CallWorkspace workspace;

  /// Which matrix of a (or b, by its strides) batch `index` of c reads.
  int64_t matrixOf(const Shape &strides, int64_t index) const {
    int64_t matrix = 0;
    for (size_t d = batch.size(); d-- > 0;) {
      matrix += index % batch[d] * strides[d];
      index /= batch[d];
    }
    return matrix;
  }

private:
  void readEpilogue(const Call &call);
};

} // namespace ds::kernels
