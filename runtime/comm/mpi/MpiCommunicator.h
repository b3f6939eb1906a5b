//===- MpiCommunicator.h - one communicator among processes ---------------===//
#pragma once

#include "core/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/PeerMessages.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mpi.h>
#include <span>
#include <vector>

namespace ds::runtime {

class MpiTransport;

/// Every pair of ranks exchanges messages, none more than the volume of a ring; whoever owns a slice receives it from
/// all, adds in rank order, and (all_reduce) hands the sum out. MPI's own reductions would add in an order of their
/// own.
///
///   all_gather      own source to every rank
///   reduce_scatter  slice k to rank k; sum, in pieces as large as the scratch allows
///   all_reduce      the same with the slices of sliceOf, then an all_gather of sums
///   broadcast       rank 0's source to every rank
class MpiCommunicator final : public Communicator {
public:
  /// `communicator`: of all ranks, for all groups; `members`: ranks of the run; `key`: the tag of the group's messages.
  MpiCommunicator(MpiTransport &transport, MPI_Comm communicator, const std::vector<uint32_t> &members, uint32_t key);
  /// What is still under way after a failure stays there; MPI ends with the process.
  ~MpiCommunicator() override = default;

  uint32_t rank() const noexcept override { return rank_; }
  uint32_t size() const noexcept override { return uint32_t(members_.size()); }
  Status run(const Collective &collective) noexcept override;
  WireBytes wireBytes() const noexcept override;
  void countMessages(std::span<PeerMessages> messages) noexcept override { messages_ = messages; }

private:
  Status runPart(const Collective &collective, const CollectivePart &part) noexcept;
  Status allGather(const Collective &collective, const CollectivePart &part) noexcept;
  /// Sums what each rank holds of this rank's slice into `target`, which is the slice's first byte.
  Status reduceSlices(const Collective &collective, const CollectivePart &part, std::byte *target) noexcept;
  Status handOutSlices(const Collective &collective, const CollectivePart &part) noexcept;
  Status broadcast(const Collective &collective, const CollectivePart &part) noexcept;
  Status allToAll(const Collective &collective, const CollectivePart &part) noexcept;

  /// Bytes [first, first + count) of a tensor that some rank owns, for messages of at most 1 GiB.
  void startSend(uint32_t peer, const std::byte *bytes, uint64_t count, CollectiveKind kind) noexcept;
  void startReceive(uint32_t peer, std::byte *bytes, uint64_t count) noexcept;
  void countReceived() noexcept;
  /// Awaits everything started.
  Status wait(const Collective &collective) noexcept;
  Status failureOf(const Collective &collective) noexcept;

  MpiTransport &transport_;
  const MPI_Comm communicator_;
  const std::vector<uint32_t> members_;
  const int tag_;
  const uint32_t rank_;                       // within the group
  std::vector<MPI_Request> receives_, sends_; // by peer
  std::vector<const std::byte *> addends_;
  int error_ = MPI_SUCCESS; // of a call that started something
  std::array<std::atomic<uint64_t>, collectiveKinds> wireBytes_{};
  std::span<PeerMessages> messages_; // by peer, or none
};

} // namespace ds::runtime
