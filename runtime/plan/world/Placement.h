//===- Placement.h - what of a tensor each rank holds ---------------------===//
//
// Along each axis of the mesh a tensor is replicated, cut into shards, a partial sum, or another one on every rank.
// What a rank has of the whole so is its piece; where the piece varies, it has one of several versions. Of a piece laid
// flat the rank may hold a window alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ds::plan {

/// Elements [first, first + count) of a tensor laid flat.
struct Run {
  uint64_t first = 0, count = 0;
  bool operator==(const Run &) const = default;
};

/// Returns the elements of the whole tensor that a rank's piece has, in the piece's order. Neighbours are joined.
std::vector<Run> runsOf(const proto::World &world, const proto::Placement &placement, std::span<const int64_t> shape,
                        uint32_t rank);

/// Returns the elements of the whole that elements [first, first + count) of a rank's piece are.
std::vector<Run> wholeElements(const proto::World &world, const proto::Placement &placement,
                               std::span<const int64_t> shape, uint32_t rank, uint64_t first, uint64_t count);
std::vector<Run> wholeElements(const proto::Plan &plan, const proto::Variable &variable, uint32_t rank, uint64_t first,
                               uint64_t count);

/// Counts the versions of a variable that ranks have between them, and numbers the rank's: 0 where none varies.
uint64_t versionsOf(const proto::Plan &plan, const proto::Variable &variable);
uint64_t versionOf(const proto::Plan &plan, const proto::Variable &variable, uint32_t rank);

/// Counts the parts into which shards cut the whole, and numbers the rank's: 0 where none do.
uint64_t partsOf(const proto::World &world, const proto::Placement &placement);
uint64_t partOf(const proto::World &world, const proto::Placement &placement, uint32_t rank);

/// Returns the shape of a rank's piece.
std::vector<int64_t> pieceShape(const proto::Placement &placement, std::span<const int64_t> shape);

/// Counts the elements of a whole variable; of a rank's piece of it; of the variable or bucket that a buffer holds,
/// those that lie there.
uint64_t elementsOf(const proto::Variable &variable);
uint64_t pieceElements(const proto::Variable &variable);
uint64_t heldElements(const proto::Plan &plan, const proto::Buffer &buffer);

/// Leaves in the sizes of dimensions what a rank's part of one of them has.
void cut(std::vector<int64_t> &sizes, const proto::Shard &shard);

/// Whether ranks keep windows of the bucket that a buffer holds.
bool holdsWindow(const proto::Plan &plan, const proto::Buffer &buffer);

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
