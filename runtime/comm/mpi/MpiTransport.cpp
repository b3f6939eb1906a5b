//===- MpiTransport.cpp - ranks that are processes ------------------------===//
#include "runtime/comm/mpi/MpiTransport.h"

#include "core/Error.h"
#include "core/RunningClock.h"
#include "core/Status.h"
#include "runtime/comm/Arrivals.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/ControlPlane.h"
#include "runtime/comm/LastHeard.h"
#include "runtime/comm/Transport.h"
#include "runtime/comm/mpi/MpiChannel.h"
#include "runtime/comm/mpi/MpiCommunicator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mpi.h>
#include <mutex>
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

/// Waits until the request is done, asleep, while MPI's own waiting calls keep a core busy. Returns false when `giveUp`
/// holds first.
template <typename GiveUp> bool await(MPI_Request &request, const char *call, GiveUp &&giveUp) {
  int code = MPI_SUCCESS;
  const bool done = pollUntil(
      [&] {
        int isDone = 0;
        code = MPI_Test(&request, &isDone, MPI_STATUS_IGNORE);
        return code != MPI_SUCCESS || isDone != 0;
      },
      giveUp);
  check(code, call);
  return done;
}

/// Of messages over control_.
constexpr int errorTag = 0, beatTag = 1;

/// Of bytes that are copied at a time.
constexpr size_t copyBytes = size_t(1) << 20;

/// MPI_Init waits for every process that the launcher has started, and only the end of this one ends that wait.
class StartLimit {
public:
  explicit StartLimit(std::chrono::milliseconds timeout)
      : thread_([this, timeout] {
          std::unique_lock<std::mutex> lock(mutex_);
          if (Patience(timeout).wait(changed_, lock, [this] { return started_; }))
            return;
          std::fprintf(stderr, "error: not all processes that the launcher has started came to MPI within %.3g s\n",
                       double(timeout.count()) / 1000);
          std::_Exit(1);
        }) {}
  ~StartLimit() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      started_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  StartLimit(const StartLimit &) = delete;
  StartLimit &operator=(const StartLimit &) = delete;

private:
  std::mutex mutex_; // of started_
  std::condition_variable changed_;
  bool started_ = false;
  std::thread thread_; // last: it uses everything
};

/// What the launcher and MPI itself take to start, beside what a rank waits for another.
constexpr std::chrono::seconds startTime{20};

MPI_Comm duplicate(MPI_Comm communicator) {
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(communicator, &copy), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  return copy;
}

} // namespace

MpiTransport::MpiTransport(std::chrono::milliseconds timeout) : timeout_(timeout) {
  const StartLimit limit(timeout + startTime);
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
  heard_ = std::make_unique<LastHeard>(rank_, ranks_);
  beats_.resize(ranks_);
  control_ = duplicate(MPI_COMM_WORLD);
  host_ = duplicate(MPI_COMM_WORLD);
  groups_ = duplicate(MPI_COMM_WORLD);
  messages_ = duplicate(MPI_COMM_WORLD);
  everyRank_.resize(ranks_);
  std::iota(everyRank_.begin(), everyRank_.end(), 0);
  values_.assign(ranks_, 0);
  for (std::vector<MPI_Request> *requests : {&errorSends_, &valueReceives_, &valueSends_})
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
  MPI_Comm_free(&groups_);
  MPI_Comm_free(&messages_);
  MPI_Finalize();
}

void MpiTransport::finish() {
  beatsStop_ = true; // while all others still receive them: none may be on its way when MPI ends
  (void)pollUntil(
      [this] { return beatsStopped_.load(); },
      [this, patience = Patience(std::chrono::seconds(1))]() mutable { return stopped() || patience.over(); });
  if (!exchange(0, "the end of the run", /*despiteStop=*/stopped()))
    throw Error(failure().message());
  finished_ = true;
}

/// Lets the error reach the others and the others print it, before the launcher sees that this process has ended.
void MpiTransport::sayGoodbye() noexcept {
  MPI_Request all = MPI_REQUEST_NULL;
  MPI_Ibarrier(control_, &all);
  Patience patience(std::chrono::seconds(2));
  (void)pollUntil(
      [&] {
        int done = 0;
        return MPI_Test(&all, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
      },
      [&] { return patience.over(); });
}

/// No communicator of MPI's own: MPI_Comm_create_group waits for every member, and nothing ends that wait. A rank is in
/// one group for each key, so its messages with a peer are told apart by the key as their tag.
std::unique_ptr<Communicator> MpiTransport::communicator(uint32_t, const std::vector<uint32_t> &members, uint32_t key) {
  return std::make_unique<MpiCommunicator>(*this, groups_, members, key);
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
      MPI_Isend(error_.data(), int(error_.size()), MPI_CHAR, int(rank), errorTag, control_, &errorSends_[rank]);
}

/// The listener: takes the first error that another rank sends, and tells what this rank was doing when it is asked to
/// end, for mpirun may allow it no more than that. Beside that it beats.
void MpiTransport::listen() noexcept {
  bool told = false;
  auto nextBeat = std::chrono::steady_clock::now();
  for (; !done_; std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
    hearErrors();
    hearBeats();
    if (beatsStop_) {
      beatsStopped_ = std::ranges::all_of(beats_, &Beat::done);
    } else if (const auto now = std::chrono::steady_clock::now(); ranks_ > 1 && now >= nextBeat) {
      nextBeat = now + beatInterval;
      beat();
    }
    const std::atomic<bool> *requested = stopRequested_;
    if (requested != nullptr && *requested && !std::exchange(told, true))
      printLastEntered();
  }
}

void MpiTransport::hearErrors() noexcept {
  int waiting = 0;
  MPI_Status envelope;
  MPI_Iprobe(MPI_ANY_SOURCE, errorTag, control_, &waiting, &envelope);
  if (waiting == 0)
    return;
  std::array<char, 1024> text{};
  MPI_Recv(text.data(), int(text.size()) - 1, MPI_CHAR, envelope.MPI_SOURCE, errorTag, control_, MPI_STATUS_IGNORE);
  (void)failure_.report(Status::failure("%s", text.data()));
}

void MpiTransport::hearBeats() noexcept {
  while (true) {
    int waiting = 0;
    MPI_Status envelope;
    MPI_Iprobe(MPI_ANY_SOURCE, beatTag, control_, &waiting, &envelope);
    if (waiting == 0)
      return;
    heardAgoMs_.resize(ranks_);
    MPI_Recv(heardAgoMs_.data(), int(ranks_), MPI_UINT32_T, envelope.MPI_SOURCE, beatTag, control_, MPI_STATUS_IGNORE);
    heard_->hear(heardAgoMs_);
  }
}

/// Synchronous sends, as in exchange: a rank that stands still so takes one beat of each other rank and no more.
void MpiTransport::beat() noexcept {
  const uint32_t peer = LastHeard::peerOfBeat(beaten_++, rank_, ranks_);
  Beat &beat = beats_[peer];
  if (!beat.done())
    return;
  beat.agoMs.resize(ranks_);
  heard_->tell(beat.agoMs);
  MPI_Issend(beat.agoMs.data(), int(ranks_), MPI_UINT32_T, int(peer), beatTag, control_, &beat.request);
}

bool MpiTransport::Beat::done() noexcept {
  int isDone = 0;
  return MPI_Test(&request, &isDone, MPI_STATUS_IGNORE) != MPI_SUCCESS || isDone != 0; // of none: done
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
  const uint32_t peer = rank_ == from ? to : from;
  staging_.resize(copyBytes);
  for (size_t at = 0; at < bytes.size(); at += copyBytes) {
    const auto piece = bytes.subspan(at, std::min(copyBytes, bytes.size() - at));
    if (stopped())
      throw Error(failure().message());
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank_ == from) {
      std::ranges::copy(piece, staging_.begin());
      check(MPI_Issend(staging_.data(), int(piece.size()), MPI_BYTE, int(to), 0, host_, &request), "MPI_Issend");
    } else {
      check(MPI_Irecv(staging_.data(), int(piece.size()), MPI_BYTE, int(from), 0, host_, &request), "MPI_Irecv");
    }
    const std::chrono::milliseconds limit = timeout() + (peer == 0 ? graceOfRankZero : std::chrono::seconds(0));
    Patience patience(limit);
    if (!await(request, "bringing bytes from one rank to another", [&] { return stopped() || patience.over(); })) {
      stop(Status::failure("rank %u waited %.3g s for rank %u to %s bytes between steps; it stands still or is slower "
                           "than --collective-timeout allows%s",
                           rank_, double(limit.count()) / 1000, peer, rank_ == from ? "take" : "send",
                           HeardText(peer, heardMs(peer)).text()));
      throw Error(failure().message());
    }
    if (rank_ == to)
      std::copy_n(staging_.begin(), piece.size(), piece.begin());
  }
}

/// MPI_Allgather would not say who is missing. Synchronous sends, since those of collectives are counted.
bool MpiTransport::exchange(uint64_t mine, const char *what, bool despiteStop) noexcept {
  const auto ended = [&] { return stopped() && !despiteStop; };
  if (ended())
    return false;
  values_[rank_] = mine;
  for (const uint32_t peer : everyRank_) {
    if (peer == rank_)
      continue;
    MPI_Irecv(&values_[peer], 1, MPI_UINT64_T, int(peer), 0, host_, &valueReceives_[peer]);
    MPI_Issend(&values_[rank_], 1, MPI_UINT64_T, int(peer), 0, host_, &valueSends_[peer]);
  }
  const auto allDone = [](std::vector<MPI_Request> &requests) {
    int done = 0;
    return MPI_Testall(int(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS && done != 0;
  };
  Patience patience(timeout());
  if (pollUntil([&] { return allDone(valueReceives_) && allDone(valueSends_); },
                [&] { return ended() || patience.over(); }))
    return true;
  const auto arrived = [&](size_t peer) {
    int received = 0, sent = 0;
    MPI_Request_get_status(valueReceives_[peer], &received, MPI_STATUS_IGNORE);
    MPI_Request_get_status(valueSends_[peer], &sent, MPI_STATUS_IGNORE);
    return received != 0 && sent != 0;
  };
  {
    const std::lock_guard<std::mutex> lock(missingMutex_);
    for (const uint32_t peer : everyRank_) {
      int received = 0;
      MPI_Request_get_status(valueReceives_[peer], &received, MPI_STATUS_IGNORE);
      if (received == 0)
        missing_.push_back(peer);
    }
  }
  stop(missingRanks(rank_, {.kind = CollectiveKind::AllReduce, .parts = {}, .what = what}, everyRank_, timeout(),
                    arrived, [&](size_t peer) { return heardMs(uint32_t(peer)); }));
  return false;
}

void MpiTransport::exchangeOrThrow(uint64_t mine, const char *what) {
  if (!exchange(mine, what))
    throw Error(failure().message());
}

bool MpiTransport::anyOf(bool mine) noexcept {
  return !exchange(mine ? 1 : 0, "the end of a step") || std::ranges::find(values_, 1) != values_.end();
}

std::vector<uint32_t> MpiTransport::missing() const {
  const std::lock_guard<std::mutex> lock(missingMutex_);
  return missing_;
}

void MpiTransport::requireEqual(const std::string &what, uint64_t digest) {
  exchangeOrThrow(digest, what.c_str());
  requireEqualDigests(what, values_);
}

} // namespace ds::runtime

// NOLINTNEXTLINE(readability-identifier-naming): looked up by this name, cf. LoadMpi.cpp
extern "C" ds::runtime::Transport *dsMakeMpiTransport(int64_t timeoutMs) {
  return new ds::runtime::MpiTransport(std::chrono::milliseconds(timeoutMs));
}
