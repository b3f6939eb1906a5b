//===- Comparison.cpp - the first tensor that differs ---------------------===//
#include "runtime/bisect/Comparison.h"

#include "runtime/bisect/Tensor.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

using Sides = std::array<std::vector<Piece>, 2>;

/// Pieces that make the tensor whole, each element once; nothing where some are missing.
std::optional<std::vector<Piece>> coveringOf(std::vector<Piece> pieces) {
  std::ranges::sort(pieces, {}, [](const Piece &piece) { return std::pair(piece.first, piece.writer); });
  std::vector<Piece> covering;
  uint64_t next = 0;
  for (const Piece &piece : pieces)
    if (piece.first == next && piece.count > 0) {
      covering.push_back(piece);
      next += piece.count;
    }
  return !pieces.empty() && next == pieces[0].elements ? std::optional(covering) : std::nullopt;
}

uint64_t sumOf(const std::vector<Piece> &pieces) {
  uint64_t sum = 0;
  for (const Piece &piece : pieces)
    sum += piece.digest;
  return sum;
}

/// How one tensor of both plans compares.
struct Verdict {
  bool compared = true;
  std::optional<Difference> difference;
};

Verdict compareTensor(const TensorKey &key, const Sides &sides) {
  struct Known {
    int plan; ///< that the piece is of: A where it has the range
    Piece piece;
    unsigned plans = 0; ///< that have the range, a bit for each
  };
  std::map<std::pair<uint64_t, uint64_t>, Known> ranges;
  for (const int plan : {0, 1})
    for (const Piece &piece : sides[size_t(plan)]) {
      Known &known = ranges.try_emplace({piece.first, piece.count}, plan, piece).first->second;
      known.plans |= 1U << plan;
      if (known.piece.digest != piece.digest)
        return {true, Difference{key, {known.plan, {known.piece}}, {plan, {piece}}}};
    }
  if (std::ranges::all_of(ranges, [](const auto &range) { return range.second.plans == 3; }))
    return {};
  const auto a = coveringOf(sides[0]), b = coveringOf(sides[1]);
  if (!a || !b)
    return {.compared = false, .difference = {}};
  if (sumOf(*a) != sumOf(*b))
    return {true, Difference{key, {0, *a}, {1, *b}}};
  return {};
}

bool isCut(const Sides &sides) {
  return std::ranges::any_of(sides, [](const std::vector<Piece> &pieces) {
    return std::ranges::any_of(pieces, [](const Piece &piece) { return piece.count < piece.elements; });
  });
}

} // namespace

void addPiece(const Piece &piece, std::vector<Piece> &pieces) {
  std::erase_if(pieces, [&](const Piece &other) {
    return piece.isAgain && !other.isAgain && other.writer.rank == piece.writer.rank &&
           other.first < piece.first + piece.count && piece.first < other.first + other.count;
  });
  pieces.push_back(piece);
}

Comparison compare(const TensorPieces &tensors) {
  Comparison comparison;
  for (const auto &[key, sides] : tensors) {
    Verdict verdict = compareTensor(key, sides);
    if (verdict.difference) {
      comparison.difference = std::move(verdict.difference);
      return comparison;
    }
    if (!verdict.compared) {
      ++comparison.inOnePlan;
      continue;
    }
    ++comparison.equal;
    comparison.inPieces += isCut(sides);
  }
  return comparison;
}

} // namespace ds::runtime
