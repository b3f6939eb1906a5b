//===- InProcessGroup.cpp - one communicator among threads ----------------===//
#include "runtime/comm/inprocess/InProcessGroup.h"

#include "core/DType.h"
#include "core/Status.h"
#include "runtime/comm/Arrivals.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/inprocess/ByteMover.h"
#include "runtime/comm/inprocess/InProcessTransport.h"
#include "runtime/device/QueueStanding.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ds::runtime {

/// The communicator that one rank holds.
class InProcessGroup::Member final : public Communicator {
public:
  Member(InProcessGroup &group, uint32_t rank)
      : group_(group), rank_(rank), mover_(*group.places_[rank].mover), addends_(group.members_.size()) {}

  uint32_t rank() const noexcept override { return rank_; }
  uint32_t size() const noexcept override { return uint32_t(group_.members_.size()); }

  Status run(const Collective &collective) noexcept override {
    group_.places_[rank_].collective = &collective;
    if (Status status = group_.meet(rank_, collective); !status.ok())
      return status;
    if (Status status = group_.checkEqual(rank_, collective); !status.ok()) {
      (void)group_.meet(rank_, collective); // all ranks see that they disagree, and none leaves before all have looked
      return status;
    }
    for (size_t i = 0; i < collective.parts.size(); ++i)
      if (Status status = firstShare(collective, i); !status.ok())
        return status;
    if (collective.kind == CollectiveKind::AllReduce) {
      if (Status status = group_.meet(rank_, collective); !status.ok())
        return status;
      for (size_t i = 0; i < collective.parts.size(); ++i)
        if (Status status = copySlices(collective, i); !status.ok())
          return status;
    }
    return group_.meet(rank_, collective);
  }

  void belongsTo(const QueueStanding &queue) override { group_.places_[rank_].queue = &queue; }
  void addMissing(std::vector<const QueueStanding *> &queues) const override { group_.addMissing(rank_, queues); }

  WireBytes wireBytes() const noexcept override {
    WireBytes bytes;
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = wireBytes_[i];
    return bytes;
  }

private:
  const CollectivePart &partOf(uint32_t rank, size_t part) const noexcept {
    return group_.places_[rank].collective->parts[part];
  }

  Status firstShare(const Collective &collective, size_t index) noexcept {
    const CollectivePart &part = collective.parts[index];
    const auto elementBytes = uint64_t(byteSize(part.dtype));
    const uint64_t bytes = part.count * elementBytes;
    // What would have gone over the wire: each rank's memory is read where it lies.
    wireBytes_[size_t(collective.kind)] += wireBytesOf(collective.kind, part.count, elementBytes, rank_, size());
    switch (collective.kind) {
    case CollectiveKind::AllGather:
      for (uint32_t k = 0; k < size(); ++k)
        if (Status status = mover_.copy(part.target + k * bytes, partOf(k, index).source, bytes, collective.stream);
            !status.ok())
          return status;
      return Status::success();
    case CollectiveKind::ReduceScatter:
      return sum(collective, index, sliceOf(part.count, rank_, size()), part.target);
    case CollectiveKind::AllReduce: {
      const Slice slice = sliceOf(part.count, rank_, size());
      return sum(collective, index, slice, part.target + slice.begin * elementBytes);
    }
    case CollectiveKind::Broadcast:
      return mover_.copy(part.target, partOf(0, index).source, bytes, collective.stream);
    case CollectiveKind::AllToAll: {
      const uint64_t slice = bytes / size();
      for (uint32_t k = 0; k < size(); ++k)
        if (Status status =
                mover_.copy(part.target + k * slice, partOf(k, index).source + rank_ * slice, slice, collective.stream);
            !status.ok())
          return status;
      return Status::success();
    }
    }
    return Status::failure("there is no such collective");
  }

  /// Adds up a slice of all sources.
  Status sum(const Collective &collective, size_t index, Slice slice, std::byte *target) noexcept {
    const CollectivePart &part = collective.parts[index];
    for (uint32_t k = 0; k < size(); ++k)
      addends_[k] = partOf(k, index).source + slice.begin * uint64_t(byteSize(part.dtype));
    return mover_.sum(part.dtype, addends_, target, slice.size(), part.accumulate, collective.stream);
  }

  Status copySlices(const Collective &collective, size_t index) noexcept {
    const CollectivePart &part = collective.parts[index];
    const auto elementBytes = uint64_t(byteSize(part.dtype));
    for (uint32_t k = 0; k < size(); ++k) {
      const Slice slice = sliceOf(part.count, k, size());
      const uint64_t begin = slice.begin * elementBytes;
      if (Status status = mover_.copy(part.target + begin, partOf(k, index).target + begin, slice.size() * elementBytes,
                                      collective.stream);
          !status.ok())
        return status;
    }
    return Status::success();
  }

  InProcessGroup &group_;
  const uint32_t rank_;
  ByteMover &mover_;
  std::vector<const std::byte *> addends_;
  std::array<std::atomic<uint64_t>, collectiveKinds> wireBytes_{};
};

InProcessGroup::InProcessGroup(InProcessTransport &transport, const std::vector<uint32_t> &members)
    : transport_(transport), members_(members), places_(members.size()), arrivals_(transport.guard()) {}

std::unique_ptr<Communicator> InProcessGroup::join(uint32_t rank) {
  const auto place = uint32_t(std::find(members_.begin(), members_.end(), rank) - members_.begin());
  places_[place].mover = transport_.makeMover(rank);
  return std::make_unique<Member>(*this, place);
}

/// Returns when every rank has come as often as this one, or when the run was stopped. What comes after it finds what
/// the others did or enqueued before it.
Status InProcessGroup::meet(uint32_t rank, const Collective &collective) noexcept {
  ByteMover &mover = *places_[rank].mover;
  const uint64_t meeting = places_[rank].arrived + 1;
  if (Status status = mover.mark(meeting, collective.stream); !status.ok())
    return status;
  places_[rank].arrived = meeting;
  arrivals_.notify();
  const auto arrived = [&](size_t i) { return places_[i].arrived >= meeting; };
  const auto all = [&] {
    for (size_t i = 0; i < places_.size(); ++i)
      if (!arrived(i))
        return false;
    return true;
  };
  const std::chrono::milliseconds timeout = transport_.timeout();
  if (!arrivals_.waitFor(all, timeout)) {
    if (transport_.guard().failed())
      return transport_.guard().get();
    std::vector<const QueueStanding *> missing;
    addMissing(rank, missing);
    return missingRanks(members_[rank], collective, members_, timeout, arrived, NeverHeard(), whoHoldsUp(missing));
  }
  for (size_t k = 0; k < places_.size(); ++k)
    if (k != rank)
      if (Status status = mover.follow(*places_[k].mover, meeting, collective.stream); !status.ok())
        return status;
  return Status::success();
}

/// Those that have come less often than the rank, which waits for them.
void InProcessGroup::addMissing(uint32_t rank, std::vector<const QueueStanding *> &queues) const {
  for (const Place &place : places_)
    if (place.arrived < places_[rank].arrived)
      queues.push_back(place.queue);
}

/// A plan whose ranks disagree must not make a rank read past another's memory.
Status InProcessGroup::checkEqual(uint32_t rank, const Collective &collective) const noexcept {
  for (size_t k = 0; k < places_.size(); ++k) {
    const Collective &other = *places_[k].collective;
    const bool equal = other.kind == collective.kind &&
                       std::equal(other.parts.begin(), other.parts.end(), collective.parts.begin(),
                                  collective.parts.end(), [](const CollectivePart &a, const CollectivePart &b) {
                                    return a.count == b.count && a.dtype == b.dtype && a.accumulate == b.accumulate;
                                  });
    if (!equal)
      return Status::failure("rank %u entered %s of %s while rank %u entered %s of %s: ranks must enter the same "
                             "collectives in the same order",
                             members_[rank], name(collective.kind), collective.what, members_[k], name(other.kind),
                             other.what);
  }
  return Status::success();
}

} // namespace ds::runtime
