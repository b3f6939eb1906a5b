//===- Transport.h - how the ranks of a run reach each other --------------===//
#pragma once

#include "runtime/comm/Channel.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/ControlPlane.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

/// All ranks of a run, of which this process has some: threads of one process, or a process each. A rank waits for the
/// others in a collective or message, too, for as long as setTimeout says. Cf. MPI_COMM_WORLD, ncclGetUniqueId and
/// ncclCommInitRank.
class Transport : public ControlPlane {
public:
  /// The communicator of a group for `rank`, one of this process's. `members`: ranks of the run, ascending; `key`
  /// tells communicators over the same ranks apart. Every member asks for its communicators in the same order; all of
  /// them before the first run and before any channel. Throws ds::Error. Cf. MPI_Comm_create_group, ncclCommSplit.
  virtual std::unique_ptr<Communicator> communicator(uint32_t rank, const std::vector<uint32_t> &members,
                                                     uint32_t key) = 0;

  /// The ends of channel `key`, which is called `name`, of a line from rank `from` to rank `to`; the rank whose end it
  /// is runs in this process. Each is asked for once, in the order of keys, all before the first run. Throws ds::Error.
  virtual std::unique_ptr<SendingEnd> sendingEnd(uint32_t from, uint32_t to, uint32_t key, const std::string &name) = 0;
  virtual std::unique_ptr<ReceivingEnd> receivingEnd(uint32_t from, uint32_t to, uint32_t key,
                                                     const std::string &name) = 0;

  /// Memory of `rank` that its communicators and channels, which exist by now, will read and write until they are gone.
  /// Cf. ncclCommRegister.
  virtual void registerMemory(uint32_t rank, std::span<std::byte> memory) {}

  /// `requested`, which outlives the transport, becomes true when the user or the launcher asks this process to end; a
  /// transport of processes then tells what it was doing, since a launcher that ends a job for the sake of a dead rank
  /// gives the others no time for more.
  virtual void setStopFlag(const std::atomic<bool> &requested) = 0;
};

} // namespace ds::runtime
