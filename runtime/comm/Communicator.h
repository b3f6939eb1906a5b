//===- Communicator.h - collectives of a group of ranks -------------------===//
#pragma once

#include "core/DType.h"
#include "core/Status.h"
#include "runtime/device/PeerMessages.h"
#include "runtime/device/Rendezvous.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ds::runtime {

/// n ranks; c elements; slice r of n * c elements is [r * c, (r + 1) * c).
enum class CollectiveKind : uint8_t {
  AllGather,     ///< target [n * c] = the sources [c] in rank order. Cf. ncclAllGather, MPI_Iallgather
  ReduceScatter, ///< target [c] = sum of slice `rank` of the sources [n * c]. Cf. ncclReduceScatter,
                 ///< MPI_Ireduce_scatter_block
  AllReduce,     ///< target [c] = sum of the sources [c]. Cf. ncclAllReduce, MPI_Iallreduce
  Broadcast,     ///< target [c] = rank 0's source [c]. Cf. ncclBroadcast, MPI_Ibcast
  AllToAll,      ///< slice k of target [n * c] = slice `rank` of rank k's source [n * c]. Cf. MPI_Ialltoall
};
inline constexpr size_t collectiveKinds = 5;

/// "all_gather", as traces, metrics and errors call it.
constexpr const char *name(CollectiveKind kind) {
  constexpr std::array<const char *, collectiveKinds> names = {"all_gather", "reduce_scatter", "all_reduce",
                                                               "broadcast", "all_to_all"};
  return names[size_t(kind)];
}

/// One tensor of a collective, as this rank sees it.
struct CollectivePart {
  const std::byte *source = nullptr;
  /// The source itself (all_to_all: not), this rank's slice of it (reduce_scatter) or what it is a slice of
  /// (all_gather), or elsewhere.
  std::byte *target = nullptr;
  uint64_t count = 0;       ///< elements of `source`
  DType dtype = DType::F32; ///< sums: F32, F64 or I64
  bool accumulate = false;  ///< sums: onto the target's old value (all_reduce: all targets have the same one)
  /// Sums: what messages are received into; from one element a rank on, more makes fewer messages. The same size on
  /// every rank.
  std::span<std::byte> scratch = {};
};

/// One launch: parts are carried out in order. Cf. ncclGroupStart.
struct Collective {
  CollectiveKind kind;
  std::span<const CollectivePart> parts;
  const char *what = "";  ///< for errors: the reference op, or where the command stands; outlives the call
  void *stream = nullptr; ///< cudaStream_t to enqueue on, for ranks on accelerators; nullptr: carried out on the host
};

/// Bytes that this rank handed to others since the beginning, counted with every message; by kind.
using WireBytes = std::array<uint64_t, collectiveKinds>;

/// Ranks that communicate, as one of them sees it. Sums have one order, rank 0's first, whatever the arrival: the same
/// bits on every run and from every backend. All ranks enter the same collectives in the same order; two communicators
/// are independent of each other. Cf. ncclComm_t, MPI_Comm.
class Communicator : public Rendezvous {
public:
  virtual uint32_t rank() const noexcept = 0; ///< within the group
  virtual uint32_t size() const noexcept = 0;

  /// Carries it out, on the thread of the queue that the communicator belongs to; done, or enqueued on its stream, when
  /// it returns. Allocates nothing. `collective` and what it points at stay until the run is over. Fails when the
  /// transport was stopped, or names the ranks missing when they do not come in time.
  virtual Status run(const Collective &collective) noexcept = 0;

  virtual WireBytes wireBytes() const noexcept = 0;

  /// From now on counts messages there, by member, for the flight recorder; they outlive it. One whose messages the
  /// host does not see counts none.
  virtual void countMessages(std::span<PeerMessages> messages) noexcept {}
};

/// Slice r of `count` elements cut for n ranks, divisible or not.
struct Slice {
  uint64_t begin, end;
  constexpr uint64_t size() const { return end - begin; }
};
constexpr Slice sliceOf(uint64_t count, uint64_t r, uint64_t n) {
  const auto cut = [&](uint64_t i) { return uint64_t(static_cast<unsigned __int128>(count) * i / n); };
  return {cut(r), cut(r + 1)};
}

/// Bytes that rank r of n hands to others in a part of `count` elements: each of them once, as a collective that moves
/// no byte twice does.
constexpr uint64_t wireBytesOf(CollectiveKind kind, uint64_t count, uint64_t elementBytes, uint64_t r, uint64_t n) {
  const uint64_t bytes = count * elementBytes, own = sliceOf(count, r, n).size() * elementBytes;
  switch (kind) {
  case CollectiveKind::AllGather:
    return bytes * (n - 1);
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return bytes - own;
  case CollectiveKind::AllReduce:
    return bytes - own + own * (n - 1);
  case CollectiveKind::Broadcast:
    return r == 0 ? bytes * (n - 1) : 0;
  }
  return 0;
}

} // namespace ds::runtime
