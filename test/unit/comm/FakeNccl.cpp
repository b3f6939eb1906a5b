//===- FakeNccl.cpp - NCCL and what it needs of CUDA, on the host ---------===//
#include "test/unit/comm/FakeNccl.h"

#include "core/DType.h"
#include "runtime/comm/SumInRankOrder.h"
#include "runtime/comm/cuda/DeviceSum.h"
#include "runtime/comm/cuda/Progress.h"
#include "test/unit/comm/LateStream.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

struct Operation {
  enum Kind { AllGather, ReduceScatter, AllReduce, Broadcast, Reduce, Send, Receive } kind;
  const std::byte *source;
  std::byte *target;
  size_t count;
  ncclDataType_t type;
  int root;
};
using Batch = std::vector<Operation>;

size_t bytesOf(ncclDataType_t type) { return type == ncclUint8 ? 1 : type == ncclFloat32 ? 4 : 8; }

/// What the members of a communicator share.
struct Group {
  std::mutex mutex;
  std::condition_variable changed;
  int joined = 0;
  std::map<std::pair<uint64_t, int>, int> arrivals;          // by batch and meeting
  std::map<std::pair<uint64_t, int>, const Batch *> batches; // by batch and rank
};

std::mutex worldMutex;
std::map<std::string, std::shared_ptr<Group>> groups; // by unique id

} // namespace

FakeNccl &fakeNccl() {
  static FakeNccl fake{NCCL_VERSION_CODE, -1};
  return fake;
}

void resetFakeNccl() {
  fakeNccl().version = NCCL_VERSION_CODE;
  fakeNccl().failingRank = -1;
  fakeNccl().aborted = fakeNccl().destroyed = 0;
}

} // namespace ds::test

using namespace ds::test;

struct ncclComm {
  std::shared_ptr<Group> group;
  int rank = 0, ranks = 0;
  uint64_t batches = 0;
  std::atomic<int> looks = 0; // that still answer ncclInProgress
  bool aborted = false;       // guarded by the group's mutex

  bool everyoneJoined() const {
    const std::lock_guard<std::mutex> lock(group->mutex);
    return group->joined == ranks;
  }

  /// Returns false when it was aborted.
  bool meet(uint64_t batch, int meeting) const {
    std::unique_lock<std::mutex> lock(group->mutex);
    ++group->arrivals[{batch, meeting}];
    group->changed.notify_all();
    group->changed.wait(lock, [&] { return aborted || group->arrivals[{batch, meeting}] == ranks; });
    return !aborted;
  }

  const Operation &of(uint64_t batch, int member, size_t index) const {
    const std::lock_guard<std::mutex> lock(group->mutex);
    return group->batches.at({batch, member})->at(index);
  }

  template <typename T> std::vector<std::byte> summed(uint64_t batch, size_t index, size_t first, size_t count) const {
    std::vector<T> sum(count);
    for (int k = ranks; k-- > 0;) // another order than the CPU's
      for (size_t i = 0; i < count; ++i)
        sum[i] += reinterpret_cast<const T *>(of(batch, k, index).source)[first + i];
    const auto bytes = std::as_bytes(std::span(sum));
    return {bytes.begin(), bytes.end()};
  }

  /// What the operation writes on this rank.
  std::vector<std::byte> result(uint64_t batch, size_t index) const {
    const Operation &mine = of(batch, rank, index);
    const size_t bytes = mine.count * bytesOf(mine.type);
    const auto copyOf = [&](int member) {
      const Operation &theirs = of(batch, member, index);
      return std::vector<std::byte>(theirs.source, theirs.source + bytes);
    };
    std::vector<std::byte> all;
    switch (mine.kind) {
    case Operation::AllGather:
      for (int k = 0; k < ranks; ++k)
        std::ranges::copy(copyOf(k), std::back_inserter(all));
      return all;
    case Operation::Broadcast:
      return copyOf(mine.root);
    case Operation::Receive:
      return copyOf(mine.root);
    case Operation::Send:
      return {};
    default:
      break;
    }
    if (mine.kind == Operation::Reduce && mine.root != rank)
      return {};
    const size_t first = mine.kind == Operation::ReduceScatter ? size_t(rank) * mine.count : 0;
    return mine.type == ncclFloat32   ? summed<float>(batch, index, first, mine.count)
           : mine.type == ncclFloat64 ? summed<double>(batch, index, first, mine.count)
                                      : summed<int64_t>(batch, index, first, mine.count);
  }

  void carryOut(uint64_t number, const Batch &batch) const {
    {
      const std::lock_guard<std::mutex> lock(group->mutex);
      group->batches[{number, rank}] = &batch;
    }
    if (!meet(number, 0))
      return;
    std::vector<std::vector<std::byte>> results;
    for (size_t i = 0; i < batch.size(); ++i)
      results.push_back(result(number, i));
    if (!meet(number, 1))
      return;
    for (size_t i = 0; i < batch.size(); ++i)
      std::ranges::copy(results[i], batch[i].target);
    (void)meet(number, 2);
  }
};

namespace {

// Communicators stay for ever: streams may still be in them after an abort.
std::vector<std::unique_ptr<ncclComm>> &communicators() {
  static std::vector<std::unique_ptr<ncclComm>> all;
  return all;
}

thread_local int depth = 0;
thread_local std::map<ncclComm_t, std::pair<Batch, cudaStream_t>> pending;

ncclResult_t add(ncclComm_t communicator, cudaStream_t stream, const Operation &operation) {
  if (depth == 0)
    return ncclInvalidUsage; // all of ours stand in groups
  pending[communicator].first.push_back(operation);
  pending[communicator].second = stream;
  return ncclSuccess;
}

LateStream &lateStream(cudaStream_t stream) { return *reinterpret_cast<LateStream *>(stream); }

const std::byte *in(const void *source) { return static_cast<const std::byte *>(source); }
std::byte *out(void *target) { return static_cast<std::byte *>(target); }

} // namespace

ncclResult_t ncclGetVersion(int *version) {
  *version = fakeNccl().version;
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t result) { return result == ncclRemoteError ? "remote error" : "an error"; }
const char *ncclGetLastError(ncclComm_t) { return "the fake was told to fail"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static std::atomic<int> number = 0;
  std::snprintf(id->internal, sizeof id->internal, "id %d", ++number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config) {
  if (config->blocking != 0)
    return ncclInvalidArgument;
  const std::lock_guard<std::mutex> lock(worldMutex);
  std::shared_ptr<Group> &group = groups[id.internal];
  if (!group)
    group = std::make_shared<Group>();
  auto communicator = std::make_unique<ncclComm>();
  communicator->group = group;
  communicator->rank = rank;
  communicator->ranks = ranks;
  {
    const std::lock_guard<std::mutex> joining(group->mutex);
    ++group->joined;
  }
  *made = communicators().emplace_back(std::move(communicator)).get();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t *state) {
  *state = ncclSuccess;
  if (fakeNccl().failingRank == communicator->rank)
    *state = ncclRemoteError;
  else if (!communicator->everyoneJoined() || (communicator->looks > 0 && communicator->looks-- > 0))
    *state = ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t, void *buffer, size_t, void **handle) {
  *handle = buffer;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t, void *) { return ncclSuccess; }
ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  communicator->looks = 2;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t) {
  const std::lock_guard<std::mutex> lock(worldMutex);
  ++fakeNccl().destroyed;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  {
    const std::lock_guard<std::mutex> lock(communicator->group->mutex);
    communicator->aborted = true;
    communicator->group->changed.notify_all();
  }
  const std::lock_guard<std::mutex> lock(worldMutex);
  ++fakeNccl().aborted;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--depth > 0 || pending.empty())
    return ncclSuccess;
  for (auto &[communicator, work] : pending) {
    communicator->looks = 3;
    lateStream(work.second)
        .enqueue([communicator = communicator, number = communicator->batches++, batch = std::move(work.first)] {
          communicator->carryOut(number, batch);
        });
  }
  pending.clear();
  return ncclInProgress;
}

ncclResult_t ncclAllGather(const void *source, void *target, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
  return add(communicator, stream, {Operation::AllGather, in(source), out(target), count, type, 0});
}
ncclResult_t ncclReduceScatter(const void *source, void *target, size_t count, ncclDataType_t type, ncclRedOp_t,
                               ncclComm_t communicator, cudaStream_t stream) {
  return add(communicator, stream, {Operation::ReduceScatter, in(source), out(target), count, type, 0});
}
ncclResult_t ncclAllReduce(const void *source, void *target, size_t count, ncclDataType_t type, ncclRedOp_t,
                           ncclComm_t communicator, cudaStream_t stream) {
  return add(communicator, stream, {Operation::AllReduce, in(source), out(target), count, type, 0});
}
ncclResult_t ncclBroadcast(const void *source, void *target, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  return add(communicator, stream, {Operation::Broadcast, in(source), out(target), count, type, root});
}
ncclResult_t ncclReduce(const void *source, void *target, size_t count, ncclDataType_t type, ncclRedOp_t, int root,
                        ncclComm_t communicator, cudaStream_t stream) {
  return add(communicator, stream, {Operation::Reduce, in(source), out(target), count, type, root});
}
ncclResult_t ncclSend(const void *source, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return add(communicator, stream, {Operation::Send, in(source), nullptr, count, type, peer});
}
ncclResult_t ncclRecv(void *target, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return add(communicator, stream, {Operation::Receive, nullptr, out(target), count, type, peer});
}

cudaError_t cudaSetDevice(int) { return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t) { return "an error of CUDA"; }
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void *memory) {
  std::free(memory);
  return cudaSuccess;
}

namespace ds::runtime {

cudaError_t markBegun(Progress *progress, uint32_t call, cudaStream_t stream) noexcept {
  lateStream(stream).enqueue([=] {
    progress->call = call;
    progress->begun = progress->begun + 1;
  });
  return cudaSuccess;
}

cudaError_t markDone(Progress *progress, cudaStream_t stream) noexcept {
  lateStream(stream).enqueue([=] { progress->done = progress->done + 1; });
  return cudaSuccess;
}

cudaError_t sumOnDevice(DType dtype, std::span<const std::byte *const> addends, std::byte *target, uint64_t count,
                        bool accumulate, cudaStream_t stream) noexcept {
  lateStream(stream).enqueue([=, addends = std::vector<const std::byte *>(addends.begin(), addends.end())] {
    sumInRankOrder(dtype, addends, target, count, accumulate);
  });
  return cudaSuccess;
}

} // namespace ds::runtime
