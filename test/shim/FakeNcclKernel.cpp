//===- FakeNcclKernel.cpp - what a group of calls does on a stream --------===//
#include "test/shim/FakeNcclKernel.h"

#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "test/shim/Streams.h"

#include <algorithm>
#include <cstring>
#include <utility>

ncclResult_t ncclComm::fail(ncclResult_t code, const std::string &why) {
  if (error == ncclSuccess) {
    error = code;
    sentence = why;
  }
  return error;
}

namespace shim {

namespace {

std::string nameOf(const std::vector<NcclOperation> &operations) {
  const std::string more = operations.size() > 1 ? " and " + std::to_string(operations.size() - 1) + " more" : "";
  return "a kernel of NCCL (" + operations[0].call.text() + more + ")";
}

/// Whether no byte is both in the source and in a target, where it may be overwritten. Cf. "In-place Operations" of
/// NCCL's guide.
bool keepsSource(const NcclOperation &one, int rank, int ranks) {
  const std::byte *source = one.source, *target = one.target;
  return source + one.call.sourceBytes(rank, ranks) <= target || target + one.call.targetBytes(rank, ranks) <= source;
}

/// The bytes of the target that are written: not those that stay in place.
std::pair<uint64_t, uint64_t> keptInPlace(const NcclOperation &one, int rank, int ranks) {
  const uint64_t bytes = one.call.sourceBytes(rank, ranks);
  const bool moves = one.call.kind == NcclCall::AllGather || one.call.kind == NcclCall::Broadcast;
  if (!moves || bytes == 0 || keepsSource(one, rank, ranks))
    return {0, 0};
  const auto first = uint64_t(one.source - one.target);
  return {first, first + bytes};
}

/// Calls body(first, end) for the parts of the target that are written.
template <typename Body> void forEachWritten(const NcclOperation &one, int rank, int ranks, Body &&body) {
  const auto [first, end] = keptInPlace(one, rank, ranks);
  const uint64_t bytes = one.call.targetBytes(rank, ranks);
  if (first > 0)
    body(uint64_t(0), first);
  if (end < bytes)
    body(end, bytes);
}

/// From the last rank to the first: NCCL's order is its own, so the fake's is not that of the CPU either. Sums of 16
/// bits are rounded at each addition, as NCCL's are on their way from rank to rank.
template <typename T> void add(std::vector<std::byte> &sum, const std::byte *addend) {
  for (size_t i = 0; i < sum.size(); i += sizeof(T)) {
    T left, right;
    std::memcpy(&left, &sum[i], sizeof(T));
    std::memcpy(&right, addend + i, sizeof(T));
    left = T(left + right);
    std::memcpy(&sum[i], &left, sizeof(T));
  }
}

void addElements(uint32_t type, std::vector<std::byte> &sum, const std::byte *addend) {
  if (type == ncclFloat32)
    add<float>(sum, addend);
  else if (type == ncclFloat64)
    add<double>(sum, addend);
  else if (type == ncclFloat16)
    add<ds::Float16>(sum, addend);
  else if (type == ncclBfloat16)
    add<ds::BFloat16>(sum, addend);
  else
    add<uint64_t>(sum, addend); // as int64, but an overflow wraps
}

/// Of the source of one call in a member's message.
const std::byte *sourceIn(const NcclMessage &message, size_t index, int rank, int ranks) {
  const std::byte *at = message.bytes.data();
  for (size_t i = 0; i < index; ++i)
    at += message.calls[i].sourceBytes(rank, ranks);
  return at;
}

/// Whether `theirs`, of rank `rank`, is what `mine` needs there.
bool fits(const NcclCall &mine, int myRank, const NcclCall &theirs) {
  if (mine.isMessage())
    return theirs.kind == (mine.kind == NcclCall::Send ? NcclCall::Receive : NcclCall::Send) &&
           theirs.other == myRank && theirs.count == mine.count && theirs.type == mine.type;
  return theirs.kind == mine.kind && theirs.type == mine.type && theirs.sum == mine.sum && theirs.other == mine.other &&
         theirs.count == mine.count;
}

} // namespace

NcclKernel::NcclKernel(ncclComm &communicator, std::vector<NcclOperation> operations, bool captured)
    : communicator_(communicator), operations_(std::move(operations)), captured_(captured), name_(nameOf(operations_)) {
  for (size_t i = 0; i < operations_.size(); ++i) {
    const NcclCall &call = operations_[i].call;
    meetings_[call.isMessage() ? call.other : communicator_.rank].operations.push_back(i);
  }
  // Sends and receives of a group keep no order with each other: those of the lower rank's sends stand first on both.
  for (auto &[peer, meeting] : meetings_)
    std::ranges::stable_partition(meeting.operations, [&](size_t i) {
      return (operations_[i].call.kind == NcclCall::Send) == (communicator_.rank < peer);
    });
}

std::vector<const void *> NcclKernel::addresses() const {
  std::vector<const void *> all;
  for (const NcclOperation &one : operations_) {
    if (one.call.sourceBytes(communicator_.rank, communicator_.ranks) > 0)
      all.push_back(one.source);
    if (one.call.targetBytes(communicator_.rank, communicator_.ranks) > 0)
      all.push_back(one.target);
  }
  return all;
}

uint64_t NcclKernel::peers() const {
  uint64_t all = 0;
  for (const auto &[peer, meeting] : meetings_)
    all |= peer == communicator_.rank ? ~uint64_t(0) >> (64 - communicator_.ranks) : uint64_t(1) << peer;
  return all;
}

NcclMessage NcclKernel::messageOf(const Meeting &meeting) const {
  NcclMessage message{captured_, {}, {}};
  for (const size_t i : meeting.operations) {
    message.calls.push_back(operations_[i].call);
    message.bytes.insert(message.bytes.end(), sources_[i].begin(), sources_[i].end());
  }
  return message;
}

void NcclKernel::begin() {
  begun_ = true;
  sources_.clear();
  for (const NcclOperation &one : operations_)
    sources_.emplace_back(one.source, one.source + one.call.sourceBytes(communicator_.rank, communicator_.ranks));
  for (const NcclOperation &one : operations_)
    forEachWritten(one, communicator_.rank, communicator_.ranks,
                   [&](uint64_t first, uint64_t end) { std::memset(one.target + first, 0xff, end - first); });
  for (auto &[peer, meeting] : meetings_) {
    meeting.messages.clear();
    communicator_.group.arrive(peer, messageOf(meeting));
  }
}

bool NcclKernel::haveArrived() const {
  for (const auto &[peer, meeting] : meetings_)
    for (int k = 0; k < communicator_.ranks; ++k)
      if ((peer == communicator_.rank || peer == k) && !communicator_.group.hasArrived(k, peer))
        return false;
  return true;
}

bool NcclKernel::mayRun() {
  if (communicator_.isGone())
    return true;
  if (communicator_.error != ncclSuccess)
    return false; // it spins until it is aborted
  if (!begun_)
    begin();
  if (!haveArrived())
    return false;
  for (auto &[peer, meeting] : meetings_) {
    for (int k = 0; k < communicator_.ranks; ++k)
      if (peer == communicator_.rank || peer == k || k == communicator_.rank)
        meeting.messages[k] = k == communicator_.rank ? messageOf(meeting) : communicator_.group.messageOf(k, peer);
    if (const std::string why = mismatch(peer, meeting); !why.empty())
      return communicator_.fail(ncclInvalidUsage, why) == ncclSuccess;
  }
  return true;
}

std::string NcclKernel::mismatch(int peer, const Meeting &meeting) const {
  const int rank = communicator_.rank;
  const NcclMessage &mine = meeting.messages.at(rank);
  for (const auto &[k, theirs] : meeting.messages) {
    const std::string number = ", group " + std::to_string(communicator_.group.meetings(peer)) +
                               (peer == rank ? " of their communicator" : " of the two");
    const auto both = [&](const std::string &one, const std::string &other) {
      return "rank " + std::to_string(rank) + one + ", but rank " + std::to_string(k) + other + number;
    };
    if (k != rank && theirs.captured != mine.captured)
      return both(mine.captured ? " launches from a graph" : " enqueues directly",
                  theirs.captured ? " launches from a graph" : " enqueues directly");
    if (theirs.calls.size() != mine.calls.size())
      return both(" makes a group of " + std::to_string(mine.calls.size()),
                  " makes one of " + std::to_string(theirs.calls.size()));
    for (size_t i = 0; i < mine.calls.size() && k != rank; ++i)
      if (!fits(mine.calls[i], rank, theirs.calls[i]))
        return both(" is in " + mine.calls[i].text(), " is in " + theirs.calls[i].text());
  }
  return "";
}

std::vector<std::byte> NcclKernel::result(const NcclOperation &operation, const Meeting &meeting, size_t index) const {
  const NcclCall &call = operation.call;
  const int rank = communicator_.rank, ranks = communicator_.ranks;
  const uint64_t bytes = call.count * call.elementBytes();
  const auto of = [&](int k, uint64_t first) {
    const std::byte *from = sourceIn(meeting.messages.at(k), index, k, ranks) + first;
    return std::vector<std::byte>(from, from + bytes);
  };
  if (call.kind == NcclCall::Broadcast || call.kind == NcclCall::Receive)
    return of(call.other, 0);
  std::vector<std::byte> all;
  if (call.kind == NcclCall::AllGather) {
    for (int k = 0; k < ranks; ++k)
      for (const std::byte byte : of(k, 0))
        all.push_back(byte);
    return all;
  }
  const uint64_t first = call.kind == NcclCall::ReduceScatter ? uint64_t(rank) * bytes : 0;
  all = of(ranks - 1, first);
  for (int k = ranks - 1; k-- > 0;)
    addElements(call.type, all, of(k, first).data());
  return all;
}

/// Which of the sources and targets somebody wrote meanwhile, or "".
std::string NcclKernel::overwritten() const {
  const int rank = communicator_.rank, ranks = communicator_.ranks;
  for (size_t i = 0; i < operations_.size(); ++i) {
    const NcclOperation &one = operations_[i];
    if (keepsSource(one, rank, ranks) && !std::equal(sources_[i].begin(), sources_[i].end(), one.source))
      return "the source of " + one.call.text() + " was written while NCCL read it";
    bool whole = true;
    forEachWritten(one, rank, ranks, [&](uint64_t first, uint64_t end) {
      whole =
          whole && std::all_of(one.target + first, one.target + end, [](std::byte b) { return b == std::byte(0xff); });
    });
    if (!whole)
      return "the target of " + one.call.text() + " was written while NCCL wrote it";
  }
  return "";
}

void NcclKernel::run() {
  if (!communicator_.isGone()) {
    if (const std::string why = overwritten(); !why.empty())
      return breakDevices(cudaErrorLaunchFailure, why);
    for (auto &[peer, meeting] : meetings_)
      for (size_t index = 0; index < meeting.operations.size(); ++index) {
        const NcclOperation &one = operations_[meeting.operations[index]];
        if (one.call.targetBytes(communicator_.rank, communicator_.ranks) == 0)
          continue;
        const std::vector<std::byte> bytes = result(one, meeting, index);
        forEachWritten(one, communicator_.rank, communicator_.ranks, [&](uint64_t first, uint64_t end) {
          std::memcpy(one.target + first, bytes.data() + first, end - first);
        });
      }
  }
  begun_ = false;
}

} // namespace shim
