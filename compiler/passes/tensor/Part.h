//===- Part.h - what a rank of axis tensor has of a value -------------------===//
#pragma once

#include "kernels/Factors.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace ds {

/// What a rank of axis tensor has of a value.
struct Part {
  enum class Kind : uint8_t {
    Whole, ///< all ranks have the value
    Cut,   ///< each has an equal part of dimension `dim`
    Term,  ///< the value is the sum of what they have
  };
  Kind kind = Kind::Whole;
  int64_t dim = 0;
  int64_t runs = 1; ///< the dimension is as many equal runs one after another, and each rank has its part of every run

  static Part whole() { return {}; }
  static Part term() { return {.kind = Kind::Term}; }
  static Part cut(int64_t dim, int64_t runs = 1) { return {.kind = Kind::Cut, .dim = dim, .runs = runs}; }
  bool isCut() const { return kind == Kind::Cut; }
  bool isTerm() const { return kind == Kind::Term; }
  bool isWhole() const { return kind == Kind::Whole; }
  bool operator==(const Part &) const = default;
};

/// The shape of a part of a tensor among `ranks`.
llvm::SmallVector<int64_t> partShape(llvm::ArrayRef<int64_t> shape, const Part &part, int64_t ranks);

/// What a rank has of a tensor of shape `to` when it has `part` of the same elements in shape `from`; nothing where
/// that is no part of one dimension.
std::optional<Part> reshaped(const Part &part, llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to, int64_t ranks);

/// One factor of a call, cut into equal parts of `runs` equal runs.
struct FactorCut {
  size_t factor;
  int64_t runs;
  bool operator==(const FactorCut &) const = default;
};

/// The factor along which a part of an operand is one; nothing where the part is of several, or of a piece of one.
std::optional<FactorCut> factorOf(const kernels::FactorMap &map, const kernels::Dimensions &dimensions,
                                  const Part &part, int64_t ranks);

/// What a rank has of an operand where a factor is cut: all of it where it lacks the factor; nothing where the factor
/// stands in it twice.
std::optional<Part> partAlong(const kernels::FactorMap &map, const kernels::Dimensions &dimensions, FactorCut cut);

} // namespace ds
