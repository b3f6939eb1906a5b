//===- MpiTransport.cpp - ranks that are processes ------------------------===//
#include "runtime/comm/mpi/MpiTransport.h"

#include "core/Error.h"
#include "core/Status.h"
#include "runtime/comm/Arrivals.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/Transport.h"
#include "runtime/comm/mpi/MpiChannel.h"
#include "runtime/comm/mpi/MpiCommunicator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mpi.h>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

void check(int code, const char *call) {
  if (code == MPI_SUCCESS)
    return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(std::string(call) + " failed: " + text.data());
}

MPI_Comm duplicate(MPI_Comm communicator) {
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(communicator, &copy), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  return copy;
}

/// Blocking calls of MPI keep a core busy; this sleeps.
void await(MPI_Request request, const char *call) {
  int code = MPI_SUCCESS;
  (void)pollUntil(
      [&] {
        int done = 0;
        code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        return code != MPI_SUCCESS || done != 0;
      },
      [] { return false; });
  check(code, call);
}

} // namespace

MpiTransport::MpiTransport() : timeout_(std::chrono::minutes(10)) {
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_MULTIPLE)
    throw Error("this MPI does not support MPI_THREAD_MULTIPLE, which collectives beside compute need; use Open MPI "
                "with thread support, or run all ranks in one process with -n");
  int size = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  ranks_ = uint32_t(size);
  rank_ = uint32_t(rank);
  localRanks_ = {rank_};
  control_ = duplicate(MPI_COMM_WORLD);
  host_ = duplicate(MPI_COMM_WORLD);
  messages_ = duplicate(MPI_COMM_WORLD);
  everyRank_.resize(ranks_);
  std::iota(everyRank_.begin(), everyRank_.end(), 0);
  flags_.assign(ranks_, 0);
  for (std::vector<MPI_Request> *requests : {&errorSends_, &flagReceives_, &flagSends_})
    requests->assign(ranks_, MPI_REQUEST_NULL);
  listener_ = std::thread([this] { listen(); });
}

/// MPI_Finalize waits for all ranks, so only a run that every rank has finished ends with it; else this process goes
/// without, and the launcher ends the others.
MpiTransport::~MpiTransport() {
  if (!finished_)
    sayGoodbye();
  done_ = true;
  listener_.join();
  if (!finished_)
    return;
  MPI_Comm_free(&control_);
  MPI_Comm_free(&host_);
  MPI_Comm_free(&messages_);
  MPI_Finalize();
}

void MpiTransport::finish() {
  MPI_Request all = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(host_, &all), "MPI_Ibarrier");
  await(all, "MPI_Ibarrier");
  finished_ = true;
}

/// Lets the error reach the others and the others print it, before the launcher sees that this process has ended.
void MpiTransport::sayGoodbye() noexcept {
  MPI_Request all = MPI_REQUEST_NULL;
  MPI_Ibarrier(control_, &all);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  (void)pollUntil(
      [&] {
        int done = 0;
        return MPI_Test(&all, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
      },
      [&] { return std::chrono::steady_clock::now() > end; });
}

std::unique_ptr<Communicator> MpiTransport::communicator(uint32_t, const std::vector<uint32_t> &members, uint32_t key) {
  const std::vector<int> ranks(members.begin(), members.end());
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  check(MPI_Group_incl(world, int(ranks.size()), ranks.data(), &group), "MPI_Group_incl");
  MPI_Comm communicator = MPI_COMM_NULL;
  check(MPI_Comm_create_group(MPI_COMM_WORLD, group, int(key % 32768), &communicator), "MPI_Comm_create_group");
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return std::make_unique<MpiCommunicator>(*this, communicator, members);
}

std::unique_ptr<SendingEnd> MpiTransport::sendingEnd(uint32_t, uint32_t to, uint32_t key, const std::string &name) {
  return std::make_unique<MpiSendingEnd>(*this, messages_, to, key, "send", name);
}

std::unique_ptr<ReceivingEnd> MpiTransport::receivingEnd(uint32_t from, uint32_t, uint32_t key,
                                                         const std::string &name) {
  return std::make_unique<MpiReceivingEnd>(*this, messages_, from, key, "receive", name);
}

void MpiTransport::stop(const Status &status) noexcept {
  if (!failure_.report(status))
    return;
  error_ = status.message();
  for (uint32_t rank = 0; rank < ranks_; ++rank)
    if (rank != rank_)
      MPI_Isend(error_.data(), int(error_.size()), MPI_CHAR, int(rank), 0, control_, &errorSends_[rank]);
}

/// The listener: takes the first error that another rank sends, and tells what this rank was doing when it is asked to
/// end, for mpirun may allow it no more than that.
void MpiTransport::listen() noexcept {
  bool told = false;
  for (; !done_; std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
    int waiting = 0;
    MPI_Status envelope;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, control_, &waiting, &envelope);
    if (waiting != 0) {
      std::array<char, 1024> text{};
      MPI_Recv(text.data(), int(text.size()) - 1, MPI_CHAR, envelope.MPI_SOURCE, 0, control_, MPI_STATUS_IGNORE);
      (void)failure_.report(Status::failure("%s", text.data()));
    }
    const std::atomic<bool> *requested = stopRequested_;
    if (requested != nullptr && *requested && !std::exchange(told, true))
      printLastEntered();
  }
}

void MpiTransport::entered(const char *name, const char *what) noexcept {
  lastName_ = name;
  lastWhat_ = what;
  inside_ = true;
}

void MpiTransport::printLastEntered() const noexcept {
  if (const char *last = lastName_)
    std::fprintf(stderr, "note: rank %u was asked to end; it last entered %s of %s, %s\n", rank_, last,
                 lastWhat_.load(), inside_ ? "which it has not left" : "which it has finished");
  else
    std::fprintf(stderr, "note: rank %u was asked to end; it has entered no collective or message yet\n", rank_);
}

void MpiTransport::copy(uint32_t from, uint32_t to, std::span<std::byte> bytes) {
  if (from == to || (rank_ != from && rank_ != to))
    return;
  for (size_t at = 0; at < bytes.size(); at += maxMessageBytes) {
    const auto piece = bytes.subspan(at, std::min<size_t>(maxMessageBytes, bytes.size() - at));
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank_ == from)
      check(MPI_Issend(piece.data(), int(piece.size()), MPI_BYTE, int(to), 0, host_, &request), "MPI_Issend");
    else
      check(MPI_Irecv(piece.data(), int(piece.size()), MPI_BYTE, int(from), 0, host_, &request), "MPI_Irecv");
    await(request, "bringing bytes from one rank to another");
  }
}

/// Every process tells every other, so that each knows who stands still; MPI_Allreduce would not say. Synchronous
/// sends, since those of collectives are counted.
bool MpiTransport::anyOf(bool mine) noexcept {
  flags_[rank_] = mine ? 1 : 0;
  for (uint32_t i = 1; i < ranks_; ++i) {
    const uint32_t to = (rank_ + i) % ranks_, from = (rank_ + ranks_ - i) % ranks_;
    MPI_Irecv(&flags_[from], 1, MPI_INT, int(from), 0, host_, &flagReceives_[from]);
    MPI_Issend(&flags_[rank_], 1, MPI_INT, int(to), 0, host_, &flagSends_[to]);
  }
  const auto allDone = [](std::vector<MPI_Request> &requests) {
    int done = 0;
    return MPI_Testall(int(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS && done != 0;
  };
  const auto end = std::chrono::steady_clock::now() + timeout();
  const bool answered = pollUntil([&] { return allDone(flagReceives_) && allDone(flagSends_); },
                                  [&] { return stopped() || std::chrono::steady_clock::now() > end; });
  if (answered)
    return std::ranges::find(flags_, 1) != flags_.end();
  stop(missingRanks(rank_, {.kind = CollectiveKind::AllReduce, .parts = {}, .what = "the end of a step"}, everyRank_,
                    timeout(), [&](size_t peer) {
                      int received = 0, sent = 0;
                      MPI_Request_get_status(flagReceives_[peer], &received, MPI_STATUS_IGNORE);
                      MPI_Request_get_status(flagSends_[peer], &sent, MPI_STATUS_IGNORE);
                      return received != 0 && sent != 0;
                    }));
  return true;
}

void MpiTransport::requireEqual(const std::string &what, uint64_t digest) {
  std::vector<uint64_t> digests(ranks_);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&digest, 1, MPI_UINT64_T, digests.data(), 1, MPI_UINT64_T, host_, &request), "MPI_Iallgather");
  await(request, "MPI_Iallgather");
  requireEqualDigests(what, digests);
}

} // namespace ds::runtime

// NOLINTNEXTLINE(readability-identifier-naming): looked up by this name, cf. LoadMpi.cpp
extern "C" ds::runtime::Transport *dsMakeMpiTransport() { return new ds::runtime::MpiTransport(); }
