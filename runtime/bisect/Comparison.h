//===- Comparison.h - the first tensor that differs -----------------------===//
#pragma once

#include "runtime/bisect/Tensor.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace ds::runtime {

/// What both plans wrote.
using TensorPieces = std::map<TensorKey, std::array<std::vector<Piece>, 2>>;

struct Difference {
  /// Pieces of one plan, end to end.
  struct Side {
    int plan; ///< 0: A; 1: B. Both sides are of one plan where its ranks differ among themselves.
    std::vector<Piece> pieces;
  };
  TensorKey key;
  Side one, other; ///< of the same elements
};

struct Comparison {
  uint64_t equal = 0;     ///< tensors up to the difference, if there is one
  uint64_t inPieces = 0;  ///< of them: cut in pieces
  uint64_t inOnePlan = 0; ///< tensors that one plan alone computes, or computes enough of
  std::optional<Difference> difference;
};

/// To the pieces of one tensor of one plan. What the tail of a run writes is the rank's tensor, and what the calls
/// before it wrote there was an attempt.
void addPiece(const Piece &piece, std::vector<Piece> &pieces);

/// Compares in the order of keys and ends at the first difference. Elements that several ranks, or several commands of
/// a rank, have written must all be alike.
Comparison compare(const TensorPieces &tensors);

} // namespace ds::runtime
