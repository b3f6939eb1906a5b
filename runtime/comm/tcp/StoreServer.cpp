//===- StoreServer.cpp - where the ranks of a run meet over TCP -----------===//
#include "runtime/comm/tcp/StoreServer.h"

#include "core/RunningClock.h"
#include "runtime/comm/tcp/Admission.h"
#include "runtime/comm/tcp/Frame.h"
#include "runtime/comm/tcp/Hmac.h"
#include "runtime/comm/tcp/Socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <poll.h>
#include <pthread.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

constexpr std::chrono::seconds helloTime{10}, farewellTime{3};
constexpr int tick = 20; // ms between two looks at the clock
constexpr size_t moreStrangersThanRanks = 64;
/// Few enough that strangers who talk are heard, and gone, before there are so many that the oldest has to go: it may
/// be a rank that is about to say who it is.
constexpr size_t acceptedATurn = moreStrangersThanRanks / 4;
constexpr uint32_t maxKept = 16;          // values that a rank has put and nobody has taken; two are enough
constexpr size_t maxGatheredBytes = 4096; // of one rank

} // namespace

std::vector<std::byte> toBytes(const std::string &text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string toText(const std::vector<std::byte> &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

StoreServer::StoreServer(Socket listener, const StoreAddress &address, uint32_t ranks, const RunKey &key)
    : listener_(std::move(listener)), address_(address), ranks_(ranks), key_(key), kept_(ranks),
      thread_([this] { serve(); }) {
  ::pthread_setname_np(thread_.native_handle(), "ds-store");
}

StoreServer::~StoreServer() {
  stop_ = true;
  thread_.join();
}

void StoreServer::serve() noexcept {
  std::optional<RunningClock::Time> end;
  while (!stop_ || !everyoneLeft()) {
    if (stop_ && !end)
      end = clock_.now() + farewellTime;
    if (end && clock_.now() > *end)
      return;
    waitForSomething();
    if (!stop_)
      acceptSome();
    for (Peer &peer : peers_)
      read(peer);
    answerAll();
    for (Peer &peer : peers_) {
      write(peer);
      if (peer.gone)
        lose(peer);
    }
    peers_.remove_if([](const Peer &peer) { return peer.gone; });
  }
}

void StoreServer::waitForSomething() {
  std::vector<pollfd> waits;
  if (clock_.now() >= listenAgain_)
    waits.push_back({listener_.descriptor(), POLLIN, 0});
  for (const Peer &peer : peers_)
    waits.push_back({peer.socket.descriptor(), short(POLLIN | (peer.out.empty() ? 0 : POLLOUT)), 0});
  (void)::poll(waits.data(), waits.size(), tick);
}

void StoreServer::acceptSome() {
  for (size_t i = 0; i < acceptedATurn && clock_.now() >= listenAgain_; ++i) {
    Socket socket = acceptFrom(listener_);
    if (!socket.open()) {
      if (isExhausted(errno))
        lackDescriptors();
      return;
    }
    const auto strangers = std::ranges::count_if(peers_, [](const Peer &peer) { return !peer.rank; });
    if (size_t(strangers) >= ranks_ + moreStrangersThanRanks)
      (void)dropStranger();
    peers_.push_back({.socket = std::move(socket), .helloBy = clock_.now() + helloTime});
  }
}

/// Before all ranks are there, this keeps one of them away; afterwards only strangers.
void StoreServer::lackDescriptors() {
  if (dropStranger())
    return;
  listenAgain_ = clock_.now() + std::chrono::seconds(1); // poll would not wait
  if (admitted_ < ranks_)
    fail("rank 0 has no file descriptors left for the connections of " + std::to_string(ranks_) + " ranks, of which " +
         std::to_string(admitted_) + " are there; raise the limit (ulimit -n)");
}

bool StoreServer::dropStranger() {
  const auto stranger = std::ranges::find_if(peers_, [](const Peer &peer) { return !peer.rank; });
  if (stranger == peers_.end())
    return false;
  peers_.erase(stranger);
  return true;
}

/// A piece at a time, so that a rank that sends fast keeps nobody waiting.
void StoreServer::read(Peer &peer) {
  std::array<std::byte, 65536> bytes;
  const ptrdiff_t count = peer.socket.readSome(bytes);
  if (count > 0) {
    peer.in.add(std::span(bytes).first(size_t(count)));
    peer.heard = clock_.now();
  }
  for (std::optional<Frame> frame = peer.in.next(); frame && !peer.gone; frame = peer.in.next())
    handle(peer, std::move(*frame));
  peer.gone |= count < 0 || peer.in.garbage() || (!peer.rank && clock_.now() > peer.helloBy);
}

void StoreServer::write(Peer &peer) {
  const ptrdiff_t count = peer.out.empty() ? 0 : peer.socket.writeSome(peer.out);
  if (count < 0)
    peer.gone = true;
  else
    peer.out.erase(peer.out.begin(), peer.out.begin() + count);
}

void StoreServer::handle(Peer &peer, Frame frame) {
  if (!peer.rank)
    return handleStranger(peer, frame);
  if (failure_ && frame.kind != FrameKind::Bye)
    return; // it has been told
  switch (frame.kind) {
  case FrameKind::Put:
    return put(peer, std::move(frame));
  case FrameKind::Take:
    return take(peer, frame);
  case FrameKind::Gather:
    return gather(peer, std::move(frame));
  case FrameKind::Beat:
    return; // that it came is all that it says
  case FrameKind::Bye:
    peer.bye = true;
    return;
  case FrameKind::Fail:
    return fail(toText(frame.value), &peer);
  default: // ranks do not send the others
    peer.gone = true;
  }
}

void StoreServer::handleStranger(Peer &peer, const Frame &frame) {
  if (peer.refused)
    return; // its connection stays until it has read why, for as long as any stranger's
  if (frame.kind == FrameKind::Hello && !peer.admission)
    greet(peer, frame);
  else if (frame.kind == FrameKind::Proof && peer.admission)
    admit(peer, frame);
  else
    peer.gone = true;
}

void StoreServer::greet(Peer &peer, const Frame &hello) {
  Admission admission{.ofStore = makeNonce()};
  if (!admission.readHello(hello.value)) {
    peer.gone = true;
    return;
  }
  peer.admission = admission;
  if (hello.key != key_.id)
    return refuse(peer, "rank " + std::to_string(admission.rank) + " belongs to run \"" + hello.key + "\", but run \"" +
                            key_.id + "\" listens at " + address_.text() +
                            " (DS_RUN_ID or TORCHELASTIC_RUN_ID); give each run a port of its own");
  send(peer, FrameKind::Challenge, admission.challenge(key_));
}

void StoreServer::admit(Peer &peer, const Frame &proof) {
  const auto [rank, ranks] = std::pair(peer.admission->rank, peer.admission->ranks);
  if (!equalDigests(peer.admission->rankProof(key_), proof.value))
    return refuse(peer, "rank " + std::to_string(rank) + " does not know the secret of the run at " + address_.text() +
                            " (DS_RUN_SECRET or DS_RUN_SECRET_FILE)");
  if (failure_)
    return refuse(peer, *failure_);
  if (admitted_ == ranks_)
    return refuse(peer, "the run at " + address_.text() + " has all its " + std::to_string(ranks_) +
                            " ranks already, so one more that says that it is rank " + std::to_string(rank) +
                            " was refused; give each run a port of its own");
  const bool known = std::ranges::any_of(peers_, [&](const Peer &other) { return other.rank == rank; });
  peer.rank = rank;
  peer.in.allow(maxValueBytes);
  ++admitted_;
  if (ranks != ranks_)
    return fail("rank " + std::to_string(rank) + " was told of " + std::to_string(ranks) + " ranks, but rank 0 of " +
                std::to_string(ranks_) + " (WORLD_SIZE), at " + address_.text());
  if (rank >= ranks_)
    return fail("a process says that it is rank " + std::to_string(rank) + " of " + std::to_string(ranks_) +
                " (RANK), at " + address_.text() + "; ranks count from 0");
  if (known)
    fail("two processes say that they are rank " + std::to_string(rank) + " (RANK), at " + address_.text() +
         "; give each its own, and each run a port of its own");
}

void StoreServer::refuse(Peer &peer, const std::string &text) {
  peer.refused = true;
  send(peer, FrameKind::Fail, toBytes(text));
}

void StoreServer::put(const Peer &peer, Frame frame) {
  const auto [place, fresh] = values_.try_emplace(std::move(frame.key));
  if (fresh && ++kept_[*peer.rank] > maxKept)
    fail("rank " + std::to_string(*peer.rank) + " put more than " + std::to_string(maxKept) +
         " values into the store that nobody has taken");
  if (fresh)
    place->second.author = *peer.rank;
  place->second.value = std::move(frame.value);
}

void StoreServer::take(Peer &peer, const Frame &frame) {
  if (peer.wanted)
    return fail("rank " + std::to_string(*peer.rank) + " asked the store before it was answered");
  peer.wanted = {frame.key, false, clock_.now() + frame.timeout};
}

void StoreServer::gather(Peer &peer, Frame frame) {
  if (peer.wanted || frame.value.size() > maxGatheredBytes)
    return fail("rank " + std::to_string(*peer.rank) + " asked the store " +
                (peer.wanted ? "before it was answered"
                             : "to gather more than " + std::to_string(maxGatheredBytes) + " bytes"));
  Gathering &gathering = gatherings_[frame.key];
  gathering.values.resize(ranks_);
  std::optional<std::vector<std::byte>> &value = gathering.values[*peer.rank];
  gathering.arrived += value ? 0 : 1;
  value = std::move(frame.value);
  peer.wanted = {frame.key, true, clock_.now() + frame.timeout};
}

void StoreServer::answerAll() {
  for (Peer &peer : peers_)
    if (peer.wanted && !failure_) {
      if (answer(peer))
        peer.wanted.reset();
      else if (clock_.now() > peer.wanted->deadline)
        answerLate(peer);
    }
}

bool StoreServer::answer(Peer &peer) {
  const std::string &key = peer.wanted->key;
  if (!peer.wanted->gather) {
    const auto value = values_.find(key);
    if (value == values_.end())
      return false;
    send(peer, FrameKind::Value, std::move(value->second.value));
    --kept_[value->second.author];
    values_.erase(value);
    return true;
  }
  Gathering &gathering = gatherings_[key];
  if (gathering.arrived < ranks_)
    return false;
  std::vector<std::byte> all;
  for (const auto &value : gathering.values)
    all.insert(all.end(), value->begin(), value->end());
  send(peer, FrameKind::Value, std::move(all));
  if (++gathering.answered == ranks_)
    gatherings_.erase(key);
  return true;
}

void StoreServer::answerLate(Peer &peer) {
  std::vector<Attendance> attendance(ranks_);
  for (uint32_t rank = 0; rank < ranks_ && peer.wanted->gather; ++rank)
    attendance[rank].came = gatherings_[peer.wanted->key].values[rank] ? 1 : 0;
  for (const Peer &other : peers_)
    if (other.rank)
      attendance[*other.rank].heardMs =
          int32_t(std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now() - other.heard).count());
  peer.wanted.reset();
  const auto bytes = std::as_bytes(std::span(attendance));
  send(peer, FrameKind::Late, {bytes.begin(), bytes.end()});
}

/// A peer without a rank was none of ours.
void StoreServer::lose(Peer &peer) {
  if (peer.rank && !peer.bye)
    fail("rank " + std::to_string(*peer.rank) + " has ended, or lost its connection to rank 0 at " + address_.text() +
             ", before the run was over",
         &peer);
}

void StoreServer::send(Peer &peer, FrameKind kind, std::vector<std::byte> value) {
  const std::vector<std::byte> bytes = encode({.kind = kind, .key = {}, .value = std::move(value)});
  peer.out.insert(peer.out.end(), bytes.begin(), bytes.end());
}

void StoreServer::fail(const std::string &text, const Peer *author) {
  if (failure_)
    return;
  failure_ = text;
  for (Peer &peer : peers_)
    if (&peer != author && peer.rank)
      send(peer, FrameKind::Fail, toBytes(text));
}

bool StoreServer::everyoneLeft() const {
  return std::ranges::all_of(peers_, [](const Peer &peer) { return !peer.rank || (peer.bye && peer.out.empty()); });
}

} // namespace ds::runtime
