//===- Transport.h - how the ranks of a run reach each other --------------===//
#pragma once

#include "runtime/comm/Channel.h"
#include "runtime/comm/Communicator.h"
#include "runtime/core/Status.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

/// All ranks of a run, of which this process has some: threads of one process, or a process each. Cf. MPI_COMM_WORLD,
/// ncclGetUniqueId and ncclCommInitRank.
class Transport {
public:
  virtual ~Transport() = default;

  virtual uint32_t ranks() const noexcept = 0;
  /// Ranks that run in this process, ascending.
  virtual const std::vector<uint32_t> &localRanks() const noexcept = 0;

  /// The communicator of a group for `rank`, one of this process's. `members`: ranks of the run, ascending; `key`
  /// tells communicators over the same ranks apart. Every member asks for its communicators in the same order; all of
  /// them before the first run. Throws ds::Error. Cf. MPI_Comm_create_group, ncclCommSplit.
  virtual std::unique_ptr<Communicator> communicator(uint32_t rank, const std::vector<uint32_t> &members,
                                                     uint32_t key) = 0;

  /// The ends of channel `key`, which is called `name`, of a line from rank `from` to rank `to`; the rank whose end it
  /// is runs in this process. Each is asked for once, all before the first run. Throws ds::Error.
  virtual std::unique_ptr<SendingEnd> sendingEnd(uint32_t from, uint32_t to, uint32_t key, const std::string &name) = 0;
  virtual std::unique_ptr<ReceivingEnd> receivingEnd(uint32_t from, uint32_t to, uint32_t key,
                                                     const std::string &name) = 0;

  /// How long a rank waits for the others in a collective, a message or anyOf.
  virtual void setPatience(std::chrono::milliseconds patience) noexcept = 0;

  /// Called once when some rank has failed, from any thread. Set before the first run; once it is set again, to
  /// nothing, the old one is not running any more.
  virtual void onStop(std::function<void(const Status &)> callback) = 0;
  /// A rank of this process has failed: every collective and message of every rank ends with this status, if it is the
  /// first.
  virtual void stop(const Status &status) noexcept = 0;

  /// `requested`, which outlives the transport, becomes true when the user or the launcher asks this process to end; a
  /// transport of processes then tells what it was doing, since a launcher that ends a job for the sake of a dead rank
  /// gives the others no time for more.
  virtual void noteStop(const std::atomic<bool> &requested) = 0;

  // Between runs, for whole processes: each is called by every process, in the same order. They throw ds::Error.

  /// Copies bytes of `rank`'s process into the same span of rank 0's; other processes return at once. Cf. MPI_Send,
  /// MPI_Recv.
  virtual void bringToRankZero(uint32_t rank, std::span<std::byte> bytes) = 0;
  /// Whether any process says so. Cf. MPI_Allreduce with MPI_LOR. Does not throw: a failure, which may be that some do
  /// not come in time, says so too.
  virtual bool anyOf(bool mine) noexcept = 0;
  /// Throws on every process, naming ranks, if `digest` of what `what` names is not the same everywhere.
  virtual void requireEqual(const std::string &what, uint64_t digest) = 0;
  /// The run is over on every rank. A process that is destroyed without has failed. Cf. MPI_Finalize.
  virtual void finish() = 0;
};

} // namespace ds::runtime
