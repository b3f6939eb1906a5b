//===- Spread.h - how ranks along an axis of the mesh share a value --------===//
//
// The rank at coordinate c of an axis has a part of a value, cut along one of its dimensions, or one summand of it. An
// example: of the four rows of [4, 6], cut in two along dimension 1, it has elements [3 * c, 3 * c + 3) of each.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::check {

namespace proto = plan::proto;

/// Which of [outer, length, inner] elements, laid flat, a rank has: in the middle, for each block, those from
/// offset + c / repeat * stride on, `size` of them.
struct Cut {
  struct Block {
    uint64_t offset, stride, size;
    bool operator==(const Block &) const = default;
  };
  uint64_t outer = 1, length = 1, inner = 1;
  std::vector<Block> blocks;
  uint64_t repeat = 1;

  bool operator==(const Cut &) const = default;
  /// Of `length`, how many a rank has.
  uint64_t kept() const;
  /// The same elements, with the longest runs: equal cuts are equal.
  Cut normalized() const;
  /// The cut of a tensor of this shape along a dimension, as a plan says it.
  static Cut of(std::span<const int64_t> shape, const proto::Shard &shard);
  /// What a rank has of a slice along `length`, where `outer` is of the same dimension, and of its own elements there
  /// it keeps `size` from `first` on. Nothing unless these are whole blocks, and all ranks' make up the slice.
  struct Slice;
  std::optional<Slice> slice(uint64_t first, uint64_t size) const;
  /// What it has of values side by side of which it has these; nothing if they are cut for other ranks.
  static std::optional<Cut> concat(std::span<const Cut> cuts);
  /// The n-th of n equal parts.
  static Cut inParts(uint64_t outer, uint64_t parts, uint64_t inner);

private:
  std::vector<Block> blocksOfAll() const;
};

/// Of the whole dimension, the elements from `first` on.
struct Cut::Slice {
  uint64_t first;
  Cut cut;
};

struct Spread {
  uint32_t axis;                                                                         ///< of the mesh
  proto::AxisPlacement::Reduction partial = proto::AxisPlacement::REDUCTION_UNSPECIFIED; ///< if it is a summand
  Cut cut = {};                                                                          ///< if not

  bool isPartial() const { return partial != proto::AxisPlacement::REDUCTION_UNSPECIFIED; }
  bool operator==(const Spread &) const = default;
  /// What tells it from others.
  std::string key() const;
};

} // namespace ds::check
