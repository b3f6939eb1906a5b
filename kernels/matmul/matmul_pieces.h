//===- matmul_pieces.h - how a CPU cuts a product for its workers --------===//
#pragma once

#include "kernels/matmul/matmul_call.h"

#include <cstdint>

namespace ds::kernels {

/// Rows and columns of c that one worker computes at a time; the last ones may be fewer.
struct MatmulPiece {
  int64_t rows, cols;
};

/// The pieces of a call, by its shape and by the plan's `pieces`. First folds batches that are one product of batches *
/// m rows: those with one b, and rows of a that follow each other.
MatmulPiece matmulPieceOf(MatmulCall &call);

} // namespace ds::kernels
