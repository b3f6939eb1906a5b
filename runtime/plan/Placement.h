//===- Placement.h - what of a tensor each rank holds ---------------------===//
//
// Along each axis of the mesh a tensor is replicated, cut into shards, a partial sum, or another one on every rank.
// What a rank has of the whole so is its piece; where the piece varies, it has one of several versions. Of a piece laid
// flat the rank may hold a window alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/Mesh.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace ds::plan {

/// Indices of a dimension: the rank at coordinate c of the axis has [offset + c / repeat * stride, + size).
struct Block {
  uint64_t offset = 0, stride = 0, size = 0;
};

/// The rank has the indices of all blocks, end to end. `repeat` neighbours along the axis have the same. Where two axes
/// cut one dimension, the second cuts what the first has left.
struct Shard {
  uint32_t dimension = 0;
  std::vector<Block> blocks;
  uint64_t repeat = 1;
};

/// What joins partial results: whole = the sum, the greatest or the least over the ranks of the axis.
enum class Reduction : uint8_t { Sum, Max, Min };

/// Every rank of the axis has a value of its own.
struct Varies {};

struct AxisPlacement {
  uint32_t axis = 0; ///< of the world, of size above 1
  std::variant<Shard, Reduction, Varies> how;
};

/// The rank at coordinate c of the communicator holds elements [c * stride, c * stride + count) of its piece laid flat.
struct Window {
  uint32_t communicator = 0;
  uint64_t stride = 0, count = 0;
};

struct Placement {
  std::vector<AxisPlacement> axes; ///< along all others it is replicated
  std::optional<Window> window;    ///< absent: the rank holds all of its piece

  /// Returns the axes along which it varies.
  AxisSet varying() const;
};

/// Returns how a variable lies between two steps. What a bucket cuts is the bucket's placement.
Placement placementOf(const proto::Plan &plan, const proto::Variable &variable);

/// Returns how the bucket in a buffer lies.
Placement placementOfBucket(const proto::Plan &plan, const proto::Buffer &buffer);

/// Elements [first, first + count) of a tensor laid flat.
struct Run {
  uint64_t first = 0, count = 0;
  bool operator==(const Run &) const = default;
};

/// Returns the elements of the whole tensor that a rank's piece has, in the piece's order. Neighbours are joined.
std::vector<Run> runsOf(const proto::World &world, const Placement &placement, std::span<const int64_t> shape,
                        uint32_t rank);

/// Returns the elements of the whole variable that elements [first, first + count) of a rank's piece of it are.
std::vector<Run> wholeElements(const proto::Plan &plan, const proto::Variable &variable, uint32_t rank, uint64_t first,
                               uint64_t count);

/// Counts the versions of a variable that ranks have between them, and numbers the rank's: 0 where none varies.
uint64_t versionsOf(const proto::Plan &plan, const proto::Variable &variable);
uint64_t versionOf(const proto::Plan &plan, const proto::Variable &variable, uint32_t rank);

/// Counts the elements of a whole variable.
uint64_t elementsOf(const proto::Variable &variable);

/// Elements [first, first + count) of a rank's piece of a variable lie in a buffer from `byte` on.
struct Held {
  uint32_t variable = 0;
  uint64_t first = 0, count = 0;
  uint64_t byte = 0;
};

/// Returns what a buffer holds on a rank, by where it lies: nothing where it holds neither a variable nor a bucket.
std::vector<Held> heldIn(const proto::Plan &plan, const proto::Buffer &buffer, uint32_t rank);

/// As heldIn, of all ranks of the bucket's communicator together: by where it lies in the whole bucket.
std::vector<Held> heldTogether(const proto::Plan &plan, const proto::Buffer &buffer);

/// Returns what elements [first, first + count) of a bucket hold of its members. `byte` counts from element `first` on.
std::vector<Held> membersWithin(const proto::Plan &plan, const proto::Bucket &bucket, uint64_t first, uint64_t count);

/// Returns the buffer in which the next run finds what one writes into `buffer`: itself, or that which it is the next
/// of.
uint32_t stateOf(const proto::Role &role, uint32_t buffer);

} // namespace ds::plan
