//===- FakeNcclGroup.cpp - members of a communicator, in any process ------===//
#include "test/shim/FakeNcclGroup.h"

#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

namespace shim {

uint64_t NcclCall::elementBytes() const {
  switch (ncclDataType_t(type)) {
  case ncclInt8:
  case ncclUint8:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32:
    return 4;
  default:
    return 8;
  }
}

uint64_t NcclCall::sourceBytes(int rank, int ranks) const {
  const bool reads = kind != Receive && (kind != Broadcast || other == rank);
  return reads ? count * elementBytes() * uint64_t(kind == ReduceScatter ? ranks : 1) : 0;
}

uint64_t NcclCall::targetBytes(int rank, int ranks) const {
  const bool writes = kind != Send && (kind != Reduce || other == rank);
  return writes ? count * elementBytes() * uint64_t(kind == AllGather ? ranks : 1) : 0;
}

std::string NcclCall::text() const {
  static constexpr const char *kinds[] = {"all_gather", "reduce_scatter", "all_reduce", "broadcast",
                                          "reduce",     "send",           "receive"};
  static constexpr const char *types[] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                          "uint64", "float16", "float32", "float64", "bfloat16"};
  static constexpr const char *sums[] = {"sum", "product", "maximum", "minimum", "mean"};
  std::string all = std::string(kinds[kind]) + " of " + std::to_string(count) + " " + types[type];
  if (sum >= 0 && sum != ncclSum)
    all += std::string(" by ") + sums[sum];
  return other >= 0 && !isMessage() ? all + " with root " + std::to_string(other) : all;
}

/// Of zeros at first, as a new file is.
struct NcclGroup::Shared {
  std::atomic<int> ranks;
  std::atomic<int> joined[mostMembers]; // the member's GPU + 1
  std::atomic<int> finalized[mostMembers], left[mostMembers];
  std::atomic<uint64_t> wanted[mostMembers];
  std::atomic<uint64_t> arrivals[mostMembers][mostMembers]; // by member and channel
};

namespace {

constexpr uint64_t headerBytes = uint64_t(1) << 20, placeBytes = uint64_t(1) << 32;

struct MessageHeader {
  uint64_t captured, calls, bytes;
};

} // namespace

std::string NcclGroup::make() {
  const int file = ::memfd_create("fake-nccl", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, headerBytes) != 0)
    return "";
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file); // open until the process ends
}

std::string NcclGroup::join(const std::string &name, int rank, int ranks, int gpu) {
  rank_ = rank;
  ranks_ = ranks;
  file_ = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (file_ < 0)
    return "the process that drew the unique id has ended";
  void *mapped = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED)
    return "no memory for what members share";
  shared_ = static_cast<Shared *>(mapped);
  int others = 0;
  if (!shared_->ranks.compare_exchange_strong(others, ranks) && others != ranks)
    return "rank " + std::to_string(rank) + " says that there are " + std::to_string(ranks) +
           " ranks, and another one says " + std::to_string(others);
  if (const std::string why = lockOwn(); !why.empty())
    return why;
  shared_->joined[rank] = gpu + 1;
  return "";
}

std::string NcclGroup::lockOwn() const {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank_;
  lock.l_len = 1;
  return ::fcntl(file_, F_OFD_SETLK, &lock) == 0 ? "" : "two members are rank " + std::to_string(rank_);
}

void NcclGroup::leave() {
  if (file_ < 0)
    return;
  if (shared_ != nullptr)
    shared_->left[rank_] = 1;
  ::close(file_); // and with it the lock
  file_ = -1;
}

NcclGroup::~NcclGroup() {
  leave();
  if (shared_ != nullptr)
    ::munmap(shared_, sizeof(Shared));
}

int NcclGroup::dead() const {
  for (int k = 0; k < ranks_ && file_ >= 0; ++k) {
    if (k == rank_ || shared_->joined[k] == 0 || shared_->finalized[k] != 0 || shared_->left[k] != 0)
      continue;
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = k;
    lock.l_len = 1;
    if (::fcntl(file_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK)
      return k;
  }
  return -1;
}

bool NcclGroup::allJoined() const {
  for (int k = 0; k < ranks_; ++k)
    if (shared_->joined[k] == 0)
      return false;
  return true;
}

std::string NcclGroup::sharedGpu() const {
  for (int k = 0; k < ranks_; ++k)
    for (int l = k + 1; l < ranks_; ++l)
      if (shared_->joined[k] == shared_->joined[l])
        return "ranks " + std::to_string(k) + " and " + std::to_string(l) + " of a communicator are both on GPU " +
               std::to_string(shared_->joined[k] - 1);
  return "";
}

void NcclGroup::wantConnections(uint64_t peers) { shared_->wanted[rank_] |= peers; }

bool NcclGroup::areConnected(uint64_t peers) const {
  for (int k = 0; k < ranks_; ++k)
    if ((peers >> k & 1) != 0 && k != rank_ && (shared_->wanted[k] >> rank_ & 1) == 0)
      return false;
  return true;
}

void NcclGroup::finalize() { shared_->finalized[rank_] = 1; }

bool NcclGroup::allFinalized() const {
  for (int k = 0; k < ranks_; ++k)
    if (shared_->finalized[k] == 0)
      return false;
  return true;
}

uint64_t NcclGroup::place(int member, int channel, uint64_t meeting) {
  return headerBytes + (uint64_t(member * mostMembers + channel) * 2 + meeting % 2) * placeBytes;
}

void NcclGroup::arrive(int peer, const NcclMessage &message) {
  const uint64_t meeting = ++meetings_[peer];
  const MessageHeader header{message.captured, message.calls.size(), message.bytes.size()};
  const auto callBytes = message.calls.size() * sizeof(NcclCall);
  auto at = off_t(place(rank_, peer, meeting));
  // A file in memory takes all of it at once.
  (void)!::pwrite(file_, &header, sizeof header, at);
  (void)!::pwrite(file_, message.calls.data(), callBytes, at += sizeof header);
  (void)!::pwrite(file_, message.bytes.data(), message.bytes.size(), at += off_t(callBytes));
  shared_->arrivals[rank_][peer] = meeting;
}

bool NcclGroup::hasArrived(int from, int peer) const {
  return shared_->arrivals[from][channelOf(from, peer)] >= meetings_[peer];
}

NcclMessage NcclGroup::messageOf(int from, int peer) const {
  auto at = off_t(place(from, channelOf(from, peer), meetings_[peer]));
  MessageHeader header{};
  (void)!::pread(file_, &header, sizeof header, at);
  NcclMessage message{header.captured != 0, std::vector<NcclCall>(header.calls), std::vector<std::byte>(header.bytes)};
  const auto callBytes = message.calls.size() * sizeof(NcclCall);
  (void)!::pread(file_, message.calls.data(), callBytes, at += sizeof header);
  (void)!::pread(file_, message.bytes.data(), message.bytes.size(), at += off_t(callBytes));
  return message;
}

} // namespace shim
