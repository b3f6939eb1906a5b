//===- InProcessGroup.h - one communicator among threads ------------------===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/comm/inprocess/ByteMover.h"
#include "runtime/device/QueueStanding.h"
#include "runtime/device/RunGuard.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace ds::runtime {

class InProcessTransport;

/// What the ranks of one communicator share. A rank publishes its part of a collective and counts itself as arrived;
/// when all have, each does its share by reading the others' memory, and none leaves before nobody reads any more:
///
///   all_gather      copy the others' sources                                     | leave
///   reduce_scatter  sum own slice of all sources into the target                 | leave
///   all_reduce      sum own slice of all sources into own slice of the target    | copy the others' slices | leave
///   broadcast       copy rank 0's source                                         | leave
///
/// Ranks on accelerators meet here all the same; they read and write by what they enqueue (ByteMover.h).
class InProcessGroup {
public:
  InProcessGroup(InProcessTransport &transport, const std::vector<uint32_t> &members);

  std::unique_ptr<Communicator> join(uint32_t rank);

private:
  class Member;

  struct alignas(64) Place {
    std::atomic<uint64_t> arrived = 0; // times that this rank came to a meeting
    const Collective *collective = nullptr;
    std::unique_ptr<ByteMover> mover;
    const QueueStanding *queue = nullptr; // nullptr: it was never told
  };

  Status meet(uint32_t rank, const Collective &collective) noexcept;
  void addMissing(uint32_t rank, std::vector<const QueueStanding *> &queues) const;
  Status checkEqual(uint32_t rank, const Collective &collective) const noexcept;

  InProcessTransport &transport_;
  const std::vector<uint32_t> members_; // ranks of the run
  std::vector<Place> places_;           // by rank of the group
  RunGuard::Wait arrivals_;
};

} // namespace ds::runtime
