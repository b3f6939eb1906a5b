//===- FakeNcclGroup.h - members of a communicator, in any process --------===//
//
// What the members of a fake NCCL's communicator share: a file without a name (memfd_create), which is gone with the
// last process that has it open. A member holds a lock on the byte of its number for as long as it lives, which the
// kernel takes back when its process ends, however that happens.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "test/shim/nccl.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shim {

constexpr int mostMembers = 64;

/// One call, in the form in which members compare theirs.
struct NcclCall {
  enum Kind : uint32_t { AllGather, ReduceScatter, AllReduce, Broadcast, Reduce, Send, Receive } kind;
  uint32_t type; ///< ncclDataType_t
  int32_t sum;   ///< ncclRedOp_t, or -1
  int32_t other; ///< root or peer, or -1
  uint64_t count;

  bool isMessage() const { return kind == Send || kind == Receive; }
  uint64_t elementBytes() const;
  /// Of what rank `rank` of `ranks` reads and writes.
  uint64_t sourceBytes(int rank, int ranks) const;
  uint64_t targetBytes(int rank, int ranks) const;
  /// "reduce_scatter of 12 float32".
  std::string text() const;
};

/// What a member says when it comes to a meeting: its calls, and the bytes of their sources one after another.
struct NcclMessage {
  bool captured = false; ///< it is launched from a graph
  std::vector<NcclCall> calls;
  std::vector<std::byte> bytes;
};

class NcclGroup {
public:
  /// Text by which processes of this host find a group that is new.
  static std::string make();
  /// Becomes a member. Empty on success, else why not.
  std::string join(const std::string &name, int rank, int ranks, int gpu);
  /// This member is gone; it reaches nobody any more.
  void leave();
  ~NcclGroup();

  /// One that has come and whose process has ended, or -1.
  int dead() const;
  bool allJoined() const;
  /// Two ranks of one GPU, in a sentence, or "".
  std::string sharedGpu() const;

  /// A first call with a peer makes a connection, for which the hosts of both must come (bits of ranks).
  void wantConnections(uint64_t peers);
  bool areConnected(uint64_t peers) const;

  void finalize();
  bool allFinalized() const;

  // Meetings are counted for each channel: that of all members, and one for each pair. A member's message stays until
  // it comes to the second meeting after it, and it comes to none before the one before is over.

  /// `peer`: the other of the pair, or the own rank for all.
  void arrive(int peer, const NcclMessage &message);
  bool hasArrived(int from, int peer) const;
  NcclMessage messageOf(int from, int peer) const;
  /// How many there were, this one included.
  uint64_t meetings(int peer) const { return meetings_[peer]; }

private:
  struct Shared;

  std::string lockOwn() const;
  /// Where a member writes its messages of a channel, by turns.
  static uint64_t place(int member, int channel, uint64_t meeting);
  int channelOf(int from, int peer) const { return peer == rank_ ? from : rank_; }

  int file_ = -1;
  int rank_ = 0, ranks_ = 0;
  Shared *shared_ = nullptr;
  uint64_t meetings_[mostMembers] = {};
};

} // namespace shim
