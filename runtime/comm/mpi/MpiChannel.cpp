//===- MpiChannel.cpp - messages between processes ------------------------===//
#include "runtime/comm/mpi/MpiChannel.h"

#include "core/RunningClock.h"
#include "core/Status.h"
#include "runtime/comm/Arrivals.h"
#include "runtime/comm/mpi/MpiTransport.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mpi.h>
#include <span>
#include <string>

namespace ds::runtime {

MpiChannel::MpiChannel(MpiTransport &transport, MPI_Comm communicator, uint32_t peer, uint32_t key, const char *verb,
                       const std::string &name)
    : transport_(transport), communicator_(communicator), peer_(peer), tag_(key), verb_(verb), name_(name) {
  requests_.fill(MPI_REQUEST_NULL);
}

template <typename Byte, typename Start>
Status MpiChannel::exchange(std::span<const std::span<Byte>> parts, const char *what, Start start) noexcept {
  transport_.entered(verb_, what);
  for (const std::span<Byte> &part : parts)
    for (size_t at = 0; at < part.size() && error_ == MPI_SUCCESS; at += maxMessageBytes) {
      const auto piece = part.subspan(at, std::min<size_t>(maxMessageBytes, part.size() - at));
      error_ = start(piece.data(), int(piece.size()), MPI_BYTE, int(peer_), int(tag_), communicator_,
                     &requests_[started_++]);
      bytes_ += piece.size();
      if (started_ < requests_.size())
        continue;
      if (Status status = wait(what); !status.ok())
        return status;
    }
  const Status status = wait(what);
  if (status.ok())
    transport_.left(what);
  return status;
}

/// Awaits everything started.
Status MpiChannel::wait(const char *what) noexcept {
  const auto allDone = [this] {
    int done = 0;
    error_ = MPI_Testall(int(started_), requests_.data(), &done, MPI_STATUSES_IGNORE);
    return error_ == MPI_SUCCESS && done != 0;
  };
  Patience patience(transport_.timeout());
  const bool done = pollUntil([&] { return error_ == MPI_SUCCESS && allDone(); },
                              [&] { return transport_.stopped() || error_ != MPI_SUCCESS || patience.over(); });
  if (done) {
    started_ = 0;
    return Status::success();
  }
  const Status status = failureOf(what);
  for (MPI_Request &request : requests_) // what still arrives must not be written into arenas that are gone
    if (request != MPI_REQUEST_NULL) {
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  return status;
}

Status MpiChannel::failureOf(const char *what) noexcept {
  if (transport_.stopped())
    return transport_.failure();
  if (error_ == MPI_SUCCESS)
    return missingPeer({transport_.localRanks()[0], peer_, verb_, name_.c_str()}, what, transport_.timeout(),
                       transport_.heardMs(peer_));
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error_, text.data(), &length);
  return Status::failure("rank %u, %s on channel %s (%s): MPI says: %.300s", transport_.localRanks()[0], verb_,
                         name_.c_str(), what, text.data());
}

Status MpiSendingEnd::send(std::span<const std::span<const std::byte>> parts, const char *what, void *) noexcept {
  return exchange(parts, what, MPI_Isend);
}

Status MpiReceivingEnd::receive(std::span<const std::span<std::byte>> parts, const char *what, void *) noexcept {
  return exchange(parts, what, MPI_Irecv);
}

} // namespace ds::runtime
