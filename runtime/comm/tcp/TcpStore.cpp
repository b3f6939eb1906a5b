//===- TcpStore.cpp - a rank's side of the store --------------------------===//
#include "runtime/comm/tcp/TcpStore.h"

#include "core/Error.h"
#include "core/RunningClock.h"
#include "runtime/comm/Arrivals.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/LastHeard.h"
#include "runtime/comm/tcp/Admission.h"
#include "runtime/comm/tcp/Frame.h"
#include "runtime/comm/tcp/Hmac.h"
#include "runtime/comm/tcp/Socket.h"
#include "runtime/comm/tcp/StoreServer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <poll.h>
#include <pthread.h>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How much later than asked for an answer may come before the store counts as dead.
constexpr std::chrono::seconds grace{3};

std::string seconds(milliseconds timeout) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g s", double(timeout.count()) / 1000);
  return text.data();
}

/// Of a Late answer.
std::vector<Attendance> attendanceOf(const Frame &late, uint32_t ranks) {
  std::vector<Attendance> attendance(ranks);
  std::memcpy(attendance.data(), late.value.data(), std::min(late.value.size(), ranks * sizeof(Attendance)));
  return attendance;
}

} // namespace

TcpStore::TcpStore(const StoreAddress &address, uint32_t rank, uint32_t ranks, const RunKey &key, milliseconds timeout,
                   std::function<void(const std::string &)> onFailure)
    : address_(address), rank_(rank), ranks_(ranks), key_(key), onFailure_(std::move(onFailure)) {
  if (rank_ == 0)
    listenAsRankZero();
  connect(timeout);
  listener_ = std::thread([this] { listen(); });
  ::pthread_setname_np(listener_.native_handle(), "ds-store-rank");
  try {
    greet(timeout);
  } catch (...) { // the destructor will not run
    closing_ = true;
    socket_.shutDown();
    listener_.join();
    throw;
  }
}

TcpStore::~TcpStore() {
  closing_ = true;
  socket_.shutDown();
  listener_.join();
}

void TcpStore::listenAsRankZero() {
  if (const std::string refusal = reserveDescriptors(ranks_); !refusal.empty())
    throw Error(refusal);
  std::string reason;
  Socket listening = listenOn(address_, reason);
  if (!listening.open())
    throw Error("rank 0 cannot listen at " + address_.text() + " (" + reason +
                "); MASTER_ADDR must be an address of its machine, and MASTER_PORT one that nothing else uses there");
  server_ = std::make_unique<StoreServer>(std::move(listening), address_, ranks_, key_);
}

/// Rank 0 may start later than this one, so a refused connection is tried again.
void TcpStore::connect(milliseconds timeout) {
  Patience patience(timeout, RunningClock(std::chrono::seconds(10))); // finding the name's address may take some
  std::string reason;
  for (milliseconds pause(10);; pause = std::min(pause * 2, milliseconds(500))) {
    socket_ = connectTo(address_, patience, reason);
    if (socket_.open())
      return;
    if (patience.over())
      throw Error("rank " + std::to_string(rank_) + " found no rank 0 at " + address_.text() + " within " +
                  seconds(timeout) + " (" + reason + "); start rank 0 there, which MASTER_ADDR and MASTER_PORT name");
    std::this_thread::sleep_for(pause);
  }
}

void TcpStore::greet(milliseconds timeout) {
  Admission admission{.rank = rank_, .ranks = ranks_, .ofRank = makeNonce()};
  const Frame answer = ask({.kind = FrameKind::Hello, .key = key_.id, .value = admission.hello(), .timeout = timeout});
  if (!admission.readChallenge(answer.value, key_))
    throw Error("what listens at " + address_.text() + " does not know the secret of rank " + std::to_string(rank_) +
                " (DS_RUN_SECRET or DS_RUN_SECRET_FILE); give all ranks the same, and each run a port of its own");
  const Digest proof = admission.rankProof(key_);
  send({.kind = FrameKind::Proof, .key = {}, .value = {proof.begin(), proof.end()}});
  beats_ = true; // a stranger's would end its connection
  (void)gather("start", {}, timeout, "the start of the run");
}

void TcpStore::put(const std::string &key, std::span<const std::byte> value) {
  send({.kind = FrameKind::Put, .key = key, .value = {value.begin(), value.end()}});
}

std::vector<std::byte> TcpStore::take(const std::string &key, uint32_t from, milliseconds timeout) {
  Frame answer = ask({.kind = FrameKind::Take, .key = key, .value = {}, .timeout = timeout});
  if (answer.kind == FrameKind::Late)
    giveUp("rank " + std::to_string(rank_) + " waited " + seconds(timeout) + " for rank " + std::to_string(from) +
           " to send " + key + ", which stands still or is slower than --collective-timeout allows" +
           HeardText(from, attendanceOf(answer, ranks_)[from].heardMs).text());
  return std::move(answer.value);
}

std::vector<std::byte> TcpStore::gather(const std::string &key, std::span<const std::byte> value, milliseconds timeout,
                                        const char *what) {
  Frame answer =
      ask({.kind = FrameKind::Gather, .key = key, .value = {value.begin(), value.end()}, .timeout = timeout});
  if (answer.kind != FrameKind::Late)
    return std::move(answer.value);
  const std::vector<Attendance> attendance = attendanceOf(answer, ranks_);
  std::vector<uint32_t> everyone(ranks_);
  std::iota(everyone.begin(), everyone.end(), 0);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::ranges::copy_if(everyone, std::back_inserter(missing_),
                         [&](uint32_t rank) { return attendance[rank].came == 0; });
  }
  giveUp(missingRanks(
             rank_, {.kind = CollectiveKind::AllGather, .parts = {}, .what = what}, everyone, timeout,
             [&](size_t rank) { return attendance[rank].came != 0; },
             [&](size_t rank) { return int64_t(attendance[rank].heardMs); })
             .message());
}

std::vector<uint32_t> TcpStore::missing() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return missing_;
}

void TcpStore::giveUp(const std::string &text) {
  fail(text);
  throw Error(text);
}

void TcpStore::fail(const std::string &text) noexcept {
  try {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      failure_ = failure_.value_or(text); // the store does not answer this rank any more
    }
    changed_.notify_all();
    send({.kind = FrameKind::Fail, .key = {}, .value = toBytes(text)});
  } catch (const std::exception &) { // then nobody can be told; the others will miss this rank
  }
}

void TcpStore::finish() {
  finished_ = true;
  send({.kind = FrameKind::Bye, .key = {}, .value = {}});
}

void TcpStore::send(const Frame &frame) {
  const std::lock_guard<std::mutex> lock(writing_);
  if (socket_.writeAll(encode(frame), Patience(grace)))
    return;
  const std::lock_guard<std::mutex> reading(mutex_);
  throw Error(
      failure_.value_or("rank " + std::to_string(rank_) + " cannot reach rank 0 at " + address_.text() + " any more"));
}

Frame TcpStore::ask(const Frame &frame) {
  send(frame);
  std::unique_lock<std::mutex> lock(mutex_);
  const bool heard = Patience(frame.timeout + grace).wait(changed_, lock, [this] {
    return answer_.has_value() || failure_.has_value();
  });
  if (failure_ && !answer_) // an answer that came before the failure counts
    throw Error(*failure_);
  if (!heard)
    throw Error("rank 0 at " + address_.text() + " has not answered rank " + std::to_string(rank_) + " for " +
                seconds(frame.timeout + grace) + "; is it a ds-run of this run that listens there?");
  Frame answer = std::move(*answer_);
  answer_.reset();
  return answer;
}

void TcpStore::listen() noexcept {
  FrameReader reader(maxAnswerBytes);
  std::array<std::byte, 65536> bytes;
  auto nextBeat = Clock::now();
  while (true) {
    pollfd wait{socket_.descriptor(), POLLIN, 0};
    const int woken = ::poll(&wait, 1, int(beatInterval.count())); // by shutDown, too
    if (Clock::now() >= nextBeat) {
      nextBeat = Clock::now() + beatInterval;
      beat();
    }
    if (woken == 0)
      continue;
    const ptrdiff_t count = socket_.readSome(bytes);
    if (count < 0)
      return noteFailure("rank 0 at " + address_.text() + ", through which the ranks find each other, has gone");
    reader.add(std::span(bytes).first(size_t(count)));
    for (auto frame = reader.next(); frame; frame = reader.next())
      if (!hear(std::move(*frame)))
        return;
    if (reader.garbage())
      return noteFailure("something answers at " + address_.text() +
                         ", but it is no rank 0 of a ds-run; choose another "
                         "MASTER_PORT, the same for all ranks");
  }
}

void TcpStore::beat() noexcept {
  if (!beats_ || finished_ || closing_)
    return;
  try {
    send({.kind = FrameKind::Beat, .key = {}, .value = {}});
  } catch (const std::exception &) { // the connection has ended, which the listener hears next
  }
}

bool TcpStore::hear(Frame frame) {
  if (frame.kind == FrameKind::Fail) {
    noteFailure(toText(frame.value));
    return false;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    answer_ = std::move(frame);
  }
  changed_.notify_all();
  return true;
}

void TcpStore::noteFailure(const std::string &text) {
  if (finished_ || closing_)
    return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_ = text;
  }
  changed_.notify_all();
  onFailure_(text);
}

} // namespace ds::runtime
