//===- MpiCommunicator.cpp - one communicator among processes -------------===//
#include "runtime/comm/mpi/MpiCommunicator.h"

#include "core/DType.h"
#include "core/RunningClock.h"
#include "core/Status.h"
#include "runtime/comm/Arrivals.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/SumInRankOrder.h"
#include "runtime/comm/mpi/MpiTransport.h"
#include "runtime/device/PeerMessages.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mpi.h>
#include <vector>

namespace ds::runtime {
namespace {

/// What of bytes [first, first + length) lies in a slice of `bytes`.
uint64_t clipped(uint64_t bytes, uint64_t first, uint64_t length) {
  return bytes > first ? std::min(length, bytes - first) : 0;
}

constexpr std::chrono::milliseconds countInterval{100};

} // namespace

MpiCommunicator::MpiCommunicator(MpiTransport &transport, MPI_Comm communicator, const std::vector<uint32_t> &members,
                                 uint32_t key)
    : transport_(transport), communicator_(communicator), members_(members), tag_(int(key)),
      rank_(uint32_t(std::ranges::find(members, transport.localRanks()[0]) - members.begin())),
      receives_(members.size(), MPI_REQUEST_NULL), sends_(members.size(), MPI_REQUEST_NULL), addends_(members.size()) {}

WireBytes MpiCommunicator::wireBytes() const noexcept {
  WireBytes bytes;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = wireBytes_[i];
  return bytes;
}

Status MpiCommunicator::run(const Collective &collective) noexcept {
  transport_.entered(name(collective.kind), collective.what);
  for (const CollectivePart &part : collective.parts)
    if (Status status = runPart(collective, part); !status.ok())
      return status;
  transport_.left(collective.what);
  return Status::success();
}

Status MpiCommunicator::runPart(const Collective &collective, const CollectivePart &part) noexcept {
  const auto elementBytes = uint64_t(byteSize(part.dtype));
  switch (collective.kind) {
  case CollectiveKind::AllGather:
    return allGather(collective, part);
  case CollectiveKind::ReduceScatter:
    return reduceSlices(collective, part, part.target);
  case CollectiveKind::AllReduce:
    if (Status status =
            reduceSlices(collective, part, part.target + sliceOf(part.count, rank_, size()).begin * elementBytes);
        !status.ok())
      return status;
    return handOutSlices(collective, part);
  case CollectiveKind::Broadcast:
    return broadcast(collective, part);
  case CollectiveKind::AllToAll:
    return allToAll(collective, part);
  }
  return Status::failure("there is no such collective");
}

Status MpiCommunicator::allGather(const Collective &collective, const CollectivePart &part) noexcept {
  const uint64_t bytes = part.count * uint64_t(byteSize(part.dtype));
  if (bytes > 0)
    std::memmove(part.target + rank_ * bytes, part.source, bytes);
  for (uint64_t first = 0; first < bytes; first += maxMessageBytes) {
    const uint64_t length = clipped(bytes, first, maxMessageBytes);
    for (uint32_t i = 1; i < size(); ++i) {
      const uint32_t to = (rank_ + i) % size(), from = (rank_ + size() - i) % size();
      startReceive(from, part.target + from * bytes + first, length);
      startSend(to, part.source + first, length, collective.kind);
    }
    if (Status status = wait(collective); !status.ok())
      return status;
  }
  return Status::success();
}

Status MpiCommunicator::reduceSlices(const Collective &collective, const CollectivePart &part,
                                     std::byte *target) noexcept {
  const auto elementBytes = uint64_t(byteSize(part.dtype));
  const auto sliceBegin = [&](uint32_t k) { return sliceOf(part.count, k, size()).begin * elementBytes; };
  const auto sliceBytes = [&](uint32_t k) { return sliceOf(part.count, k, size()).size() * elementBytes; };
  // Every rank cuts its own slice into pieces of one length, known to all from the scratch that all have.
  const uint64_t others = std::max(1u, size() - 1);
  const uint64_t piece = size() == 1
                             ? std::max(elementBytes, part.count * elementBytes)
                             : std::min(maxMessageBytes, part.scratch.size() / others) / elementBytes * elementBytes;
  const uint64_t longest = (part.count + size() - 1) / size() * elementBytes;
  if (piece == 0)
    return Status::failure("%s of %s: its scratch of %zu bytes does not hold one element of each other rank",
                           name(collective.kind), collective.what, part.scratch.size());
  for (uint64_t first = 0; first < longest; first += piece) {
    const uint64_t mine = clipped(sliceBytes(rank_), first, piece);
    addends_[rank_] = part.source + sliceBegin(rank_) + first;
    for (uint32_t i = 1; i < size(); ++i) {
      const uint32_t to = (rank_ + i) % size(), from = (rank_ + size() - i) % size();
      std::byte *received = part.scratch.data() + (i - 1) * piece;
      addends_[from] = received;
      startReceive(from, received, mine);
      startSend(to, part.source + sliceBegin(to) + first, clipped(sliceBytes(to), first, piece), collective.kind);
    }
    if (Status status = wait(collective); !status.ok())
      return status;
    sumInRankOrder(part.dtype, addends_, target + first, mine / elementBytes, part.accumulate);
  }
  return Status::success();
}

Status MpiCommunicator::handOutSlices(const Collective &collective, const CollectivePart &part) noexcept {
  const auto elementBytes = uint64_t(byteSize(part.dtype));
  const auto slice = [&](uint32_t k) { return sliceOf(part.count, k, size()); };
  const uint64_t longest = (part.count + size() - 1) / size() * elementBytes;
  for (uint64_t first = 0; first < longest; first += maxMessageBytes) {
    const auto begin = [&](uint32_t k) { return part.target + slice(k).begin * elementBytes + first; };
    const auto length = [&](uint32_t k) { return clipped(slice(k).size() * elementBytes, first, maxMessageBytes); };
    for (uint32_t i = 1; i < size(); ++i) {
      const uint32_t to = (rank_ + i) % size(), from = (rank_ + size() - i) % size();
      startReceive(from, begin(from), length(from));
      startSend(to, begin(rank_), length(rank_), collective.kind);
    }
    if (Status status = wait(collective); !status.ok())
      return status;
  }
  return Status::success();
}

Status MpiCommunicator::broadcast(const Collective &collective, const CollectivePart &part) noexcept {
  const uint64_t bytes = part.count * uint64_t(byteSize(part.dtype));
  if (rank_ == 0 && bytes > 0)
    std::memmove(part.target, part.source, bytes);
  for (uint64_t first = 0; first < bytes; first += maxMessageBytes) {
    const uint64_t length = clipped(bytes, first, maxMessageBytes);
    if (rank_ != 0)
      startReceive(0, part.target + first, length);
    for (uint32_t to = 1; to < size() && rank_ == 0; ++to)
      startSend(to, part.source + first, length, collective.kind);
    if (Status status = wait(collective); !status.ok())
      return status;
  }
  return Status::success();
}

Status MpiCommunicator::allToAll(const Collective &collective, const CollectivePart &part) noexcept {
  const uint64_t slice = part.count / size() * uint64_t(byteSize(part.dtype));
  if (slice > 0)
    std::memcpy(part.target + rank_ * slice, part.source + rank_ * slice, slice);
  for (uint64_t first = 0; first < slice; first += maxMessageBytes) {
    const uint64_t length = clipped(slice, first, maxMessageBytes);
    for (uint32_t i = 1; i < size(); ++i) {
      const uint32_t to = (rank_ + i) % size(), from = (rank_ + size() - i) % size();
      startReceive(from, part.target + from * slice + first, length);
      startSend(to, part.source + to * slice + first, length, collective.kind);
    }
    if (Status status = wait(collective); !status.ok())
      return status;
  }
  return Status::success();
}

void MpiCommunicator::startSend(uint32_t peer, const std::byte *bytes, uint64_t count, CollectiveKind kind) noexcept {
  if (count == 0 || error_ != MPI_SUCCESS)
    return;
  error_ = MPI_Isend(bytes, int(count), MPI_BYTE, int(members_[peer]), tag_, communicator_, &sends_[peer]);
  wireBytes_[size_t(kind)] += count;
  if (!messages_.empty())
    PeerMessages::count(messages_[peer].sent);
}

void MpiCommunicator::startReceive(uint32_t peer, std::byte *bytes, uint64_t count) noexcept {
  if (count == 0 || error_ != MPI_SUCCESS)
    return;
  error_ = MPI_Irecv(bytes, int(count), MPI_BYTE, int(members_[peer]), tag_, communicator_, &receives_[peer]);
  if (!messages_.empty())
    PeerMessages::count(messages_[peer].expected);
}

void MpiCommunicator::countReceived() noexcept {
  for (size_t peer = 0; peer < messages_.size(); ++peer) {
    int received = 0;
    MPI_Request_get_status(receives_[peer], &received, MPI_STATUS_IGNORE); // of none: that it has ended
    if (received != 0)
      messages_[peer].allReceived();
  }
}

Status MpiCommunicator::wait(const Collective &collective) noexcept {
  const auto allDone = [this](std::vector<MPI_Request> &requests) {
    int done = 0;
    const int code = MPI_Testall(int(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    error_ = code != MPI_SUCCESS ? code : error_;
    return done != 0;
  };
  Patience patience(transport_.timeout());
  auto look = std::chrono::steady_clock::now() + countInterval;
  const bool done = pollUntil([&] { return error_ == MPI_SUCCESS && allDone(receives_) && allDone(sends_); },
                              [&] {
                                const auto now = std::chrono::steady_clock::now();
                                if (now > look) {
                                  countReceived(); // who looks meanwhile sees what this rank still waits for
                                  look = now + countInterval;
                                }
                                return transport_.stopped() || error_ != MPI_SUCCESS || patience.over();
                              });
  countReceived();
  if (done)
    return Status::success();
  const Status status = failureOf(collective);
  for (MPI_Request &request : receives_) // what still arrives must not be written into arenas that are gone
    if (request != MPI_REQUEST_NULL) {
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  return status;
}

Status MpiCommunicator::failureOf(const Collective &collective) noexcept {
  if (transport_.stopped())
    return transport_.failure();
  if (error_ != MPI_SUCCESS) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(error_, text.data(), &length);
    return Status::failure("rank %u, %s of %s: MPI says: %.300s", members_[rank_], name(collective.kind),
                           collective.what, text.data());
  }
  const auto arrived = [&](size_t peer) {
    int received = 0, sent = 0;
    MPI_Request_get_status(receives_[peer], &received, MPI_STATUS_IGNORE);
    MPI_Request_get_status(sends_[peer], &sent, MPI_STATUS_IGNORE);
    return received != 0 && sent != 0;
  };
  return missingRanks(members_[rank_], collective, members_, transport_.timeout(), arrived,
                      [&](size_t peer) { return transport_.heardMs(members_[peer]); });
}

} // namespace ds::runtime
