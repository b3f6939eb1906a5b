//===- FakeNcclTesting.h - two ranks of the fake NCCL, for tests ----------===//
//
// One thread is all ranks, since nothing blocks.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "test/shim/FakeNccl.h"
#include "test/shim/FakeRuntime.h"
#include "test/shim/nccl.h"

#include <cstddef>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace shim {

constexpr int ranks = 2;
inline const int gpus = ::setenv("DS_FAKE_CUDA_GPUS", "2", 1); // before the first call

using Floats = std::vector<float>;
using Rank = int;

struct Call {
  ncclComm_t communicator;
  cudaStream_t stream;
  float *source, *target; ///< 16 elements each
};

inline ncclResult_t gather(const Call &c) {
  return ncclAllGather(c.source, c.target, 4, ncclFloat32, c.communicator, c.stream);
}
inline ncclResult_t allReduce(const Call &c) {
  return ncclAllReduce(c.source, c.target, 4, ncclFloat32, ncclSum, c.communicator, c.stream);
}
inline ncclResult_t nothing(const Call &) { return ncclSuccess; }

inline auto broadcastFrom(int root) {
  return [root](const Call &c) {
    return ncclBroadcast(c.source, c.target, 4, ncclFloat32, root, c.communicator, c.stream);
  };
}
/// The calls in one group.
template <typename... Calls> auto group(Calls... calls) {
  return [=](const Call &c) {
    (void)ncclGroupStart();
    ncclResult_t first = ncclSuccess;
    for (const ncclResult_t code : {calls(c)...})
      first = first == ncclSuccess ? code : first;
    const ncclResult_t end = ncclGroupEnd();
    return first == ncclSuccess ? end : first;
  };
}

inline ncclResult_t begin(ncclComm_t *made, const ncclUniqueId &id, Rank rank, int of = ranks, int blocking = 0) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking;
  return ncclCommInitRankConfig(made, of, id, rank, &config);
}

/// What both answer once neither is in progress, or after some looks.
inline std::string settle(ncclComm_t *communicators) {
  ncclResult_t states[ranks] = {};
  for (int looks = 0; looks < 50; ++looks)
    for (Rank k = 0; k < ranks; ++k)
      (void)ncclCommGetAsyncError(communicators[k], &states[k]);
  for (Rank k = 0; k < ranks; ++k)
    if (states[k] != ncclSuccess)
      return std::string(ncclGetErrorString(states[k])) + ": " + ncclGetLastError(communicators[k]);
  return "";
}

inline void join(ncclComm_t *made) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  for (Rank k = 0; k < ranks; ++k) {
    (void)cudaSetDevice(k);
    ASSERT_EQ(begin(&made[k], id, k), ncclInProgress);
  }
  settle(made);
}

class FakeNcclTest : public testing::Test {
protected:
  FakeNcclTest() {
    resetFakeNccl();
    join(communicators_);
    for (Rank k = 0; k < ranks; ++k) {
      (void)cudaSetDevice(k);
      (void)cudaStreamCreateWithFlags(&streams_[k], cudaStreamNonBlocking);
      for (auto *all : {&sources_, &targets_})
        (void)cudaMalloc(&(*all)[k], 16 * sizeof(float));
      for (int i = 0; i < 16; ++i)
        sources_[k][i] = float(100 * (k + 1) + i);
    }
  }

  ~FakeNcclTest() override {
    for (const ncclComm_t communicator : communicators_)
      (void)ncclCommAbort(communicator);
    reviveDevices();
    for (cudaStream_t stream : streams_)
      (void)cudaStreamDestroy(stream);
  }

  Call callOf(Rank k) { return {communicators_[k], streams_[k], sources_[k], targets_[k]}; }

  /// Each rank makes its call, and both streams are looked at until they have come to it.
  template <typename First, typename Second> std::string meet(First &&first, Second &&second) {
    (void)first(callOf(0));
    (void)second(callOf(1));
    std::string said = settle(communicators_);
    for (int looks = 0; looks < 20; ++looks)
      for (cudaStream_t stream : streams_)
        (void)cudaStreamQuery(stream);
    return said.empty() ? settle(communicators_) : said;
  }
  template <typename Each> std::string meet(Each &&each) { return meet(each, each); }

  /// To where its kernel waits for the other rank's.
  template <typename Make> void enqueueOnFirst(Make &&make) {
    ncclResult_t state = make(callOf(0));
    for (int looks = 0; looks < 50; ++looks)
      (void)ncclCommGetAsyncError(communicators_[0], &state);
    ASSERT_EQ(state, ncclSuccess);
    for (int looks = 0; looks < 20; ++looks)
      (void)cudaStreamQuery(streams_[0]);
  }

  /// A graph of each rank's call.
  template <typename Make> void capture(Make &&make, cudaGraphExec_t *graphs) {
    for (cudaStream_t stream : streams_)
      ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    for (Rank k = 0; k < ranks; ++k)
      (void)make(callOf(k));
    EXPECT_EQ(settle(communicators_), "");
    for (Rank k = 0; k < ranks; ++k) {
      cudaGraph_t graph;
      ASSERT_EQ(cudaStreamEndCapture(streams_[k], &graph), cudaSuccess);
      ASSERT_EQ(cudaGraphInstantiate(&graphs[k], graph, 0), cudaSuccess);
    }
  }

  void finish() {
    for (cudaStream_t stream : streams_)
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << cudaGetErrorString(cudaGetLastError());
  }
  Floats of(Rank k, size_t first, size_t end) { return {targets_[k] + first, targets_[k] + end}; }

  ncclComm_t communicators_[ranks];
  cudaStream_t streams_[ranks];
  float *sources_[ranks], *targets_[ranks];
};

} // namespace shim
