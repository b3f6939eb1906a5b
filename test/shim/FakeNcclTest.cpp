// What the fake NCCL does, and what it refuses: each misuse once, with its sentence. One thread is all ranks, since
// nothing blocks.
#include "test/shim/FakeNccl.h"
#include "test/shim/FakeRuntime.h"
#include "test/shim/nccl.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

namespace shim {
namespace {

constexpr int ranks = 2;
[[maybe_unused]] const int gpus = ::setenv("DS_FAKE_CUDA_GPUS", "2", 1); // before the first call

using Floats = std::vector<float>;
using Rank = int;

struct Call {
  ncclComm_t communicator;
  cudaStream_t stream;
  float *source, *target; ///< 16 elements each
};

ncclResult_t gather(const Call &c) {
  return ncclAllGather(c.source, c.target, 4, ncclFloat32, c.communicator, c.stream);
}
ncclResult_t allReduce(const Call &c) {
  return ncclAllReduce(c.source, c.target, 4, ncclFloat32, ncclSum, c.communicator, c.stream);
}
ncclResult_t nothing(const Call &) { return ncclSuccess; }

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

  static ncclResult_t begin(ncclComm_t *made, const ncclUniqueId &id, Rank rank, int of = ranks, int blocking = 0) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking;
    return ncclCommInitRankConfig(made, of, id, rank, &config);
  }

  static void join(ncclComm_t *made) {
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    for (Rank k = 0; k < ranks; ++k) {
      (void)cudaSetDevice(k);
      ASSERT_EQ(begin(&made[k], id, k), ncclInProgress);
    }
    settle(made);
  }

  /// What both answer once neither is in progress, or after some looks.
  static std::string settle(ncclComm_t *communicators) {
    ncclResult_t states[ranks] = {};
    for (int looks = 0; looks < 50; ++looks)
      for (Rank k = 0; k < ranks; ++k)
        (void)ncclCommGetAsyncError(communicators[k], &states[k]);
    for (Rank k = 0; k < ranks; ++k)
      if (states[k] != ncclSuccess)
        return std::string(ncclGetErrorString(states[k])) + ": " + ncclGetLastError(communicators[k]);
    return "";
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

  /// The call of rank 0 alone is refused with this code and these words.
  template <typename Make> void refused(ncclResult_t code, const std::string &words, Make &&make) {
    ++misuses_;
    EXPECT_EQ(make(callOf(0)), code);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(words), std::string::npos) << ncclGetLastError(nullptr);
  }
  /// A meeting ends with these words on both ranks.
  template <typename First, typename Second> void clashes(const std::string &words, First &&first, Second &&second) {
    ++misuses_;
    const std::string said = meet(first, second);
    EXPECT_NE(said.find(words), std::string::npos) << said;
    for (cudaStream_t stream : streams_)
      EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady) << "a kernel that does not fit spins for ever";
  }

  /// Another stream writes what `memory` says of a gather that is under way.
  template <typename Memory> void overwritten(Memory &&memory, const std::string &words) {
    ++misuses_;
    EXPECT_EQ(meet(gather), "");
    enqueueOnFirst(gather);
    cudaStream_t other;
    (void)cudaSetDevice(0);
    (void)cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    (void)cudaMemsetAsync(memory(callOf(0)), 7, 4, other);
    EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    (void)meet(nothing, gather);
    EXPECT_EQ(cudaStreamSynchronize(streams_[0]), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaGetErrorString(cudaErrorLaunchFailure), words);
  }

  static void TearDownTestSuite() { std::printf("%d misuses were refused\n", misuses_); }

  static inline int misuses_ = 0; // docs/gpu-shim.md has their number
  ncclComm_t communicators_[ranks];
  cudaStream_t streams_[ranks];
  float *sources_[ranks], *targets_[ranks];
};

auto broadcastFrom(int root) {
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

/// Calls body() with each of the seeds.
void underSeveralOrders(const std::function<void()> &body) {
  for (const uint64_t seed : {0, 1, 2, 3, 4, 5}) {
    SCOPED_TRACE(seed);
    setSchedule(seed);
    body();
  }
  setSchedule(2);
}

TEST_F(FakeNcclTest, CarriesOutEveryCollective) {
  underSeveralOrders([&] {
    EXPECT_EQ(meet(gather), "");
    finish();
    EXPECT_EQ(of(1, 0, 8), (Floats{100, 101, 102, 103, 200, 201, 202, 203}));
    EXPECT_EQ(meet([](const Call &c) {
                return ncclReduceScatter(c.source, c.target, 4, ncclFloat32, ncclSum, c.communicator, c.stream);
              }),
              "");
    finish();
    EXPECT_EQ(of(1, 0, 4), (Floats{308, 310, 312, 314}));
    EXPECT_EQ(meet(group(allReduce,
                         [](const Call &c) {
                           return ncclReduce(c.source, c.target + 4, 2, ncclFloat32, ncclSum, 1, c.communicator,
                                             c.stream);
                         })),
              "");
    finish();
    EXPECT_EQ(of(0, 0, 4), (Floats{300, 302, 304, 306}));
    EXPECT_EQ(of(1, 0, 6), (Floats{300, 302, 304, 306, 300, 302}));
    EXPECT_EQ(meet(broadcastFrom(1)), "");
    finish();
    EXPECT_EQ(of(0, 0, 4), (Floats{200, 201, 202, 203}));
  });
}

TEST_F(FakeNcclTest, WorksInPlaceWhereNcclDoes) {
  EXPECT_EQ(meet([this](const Call &c) {
              const size_t own = c.communicator == communicators_[0] ? 0 : 4;
              return ncclAllGather(c.source + own, c.source, 4, ncclFloat32, c.communicator, c.stream);
            }),
            "");
  finish();
  EXPECT_EQ(Floats(sources_[0], sources_[0] + 8), (Floats{100, 101, 102, 103, 204, 205, 206, 207}));
  EXPECT_EQ(meet([this](const Call &c) {
              const size_t own = c.communicator == communicators_[0] ? 8 : 12;
              return ncclReduceScatter(c.source + 8, c.source + own, 4, ncclFloat32, ncclSum, c.communicator, c.stream);
            }),
            "");
  finish();
  EXPECT_EQ(Floats(sources_[1] + 12, sources_[1] + 16), (Floats{324, 326, 328, 330}));
}

/// Both send and receive in one group, in whatever order they say so.
TEST_F(FakeNcclTest, CarriesMessagesBothWays) {
  const auto send = [this](const Call &c) {
    return ncclSend(c.source, 3, ncclFloat32, c.communicator == communicators_[0], c.communicator, c.stream);
  };
  const auto receive = [this](const Call &c) {
    return ncclRecv(c.target, 3, ncclFloat32, c.communicator == communicators_[0], c.communicator, c.stream);
  };
  underSeveralOrders([&] {
    EXPECT_EQ(meet(group(send, receive), group(send, receive)), "");
    finish();
    EXPECT_EQ(of(0, 0, 3), (Floats{200, 201, 202}));
    EXPECT_EQ(meet(group(send, receive), group(receive, send)), "");
    finish();
    EXPECT_EQ(of(1, 0, 3), (Floats{100, 101, 102}));
  });
}

TEST_F(FakeNcclTest, AStreamThatWaitsForAPeerHoldsUpNoOther) {
  float *beside = nullptr;
  cudaStream_t other;
  (void)cudaSetDevice(0);
  (void)cudaMalloc(&beside, 64);
  (void)cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  EXPECT_EQ(meet(gather), "");
  underSeveralOrders([&] {
    enqueueOnFirst(gather);
    (void)cudaMemsetAsync(beside, 7, 64, other);
    EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(streams_[0]), cudaErrorNotReady);
    EXPECT_EQ(meet(nothing, gather), "");
    finish();
  });
}

/// As on GPUs with room for both kernels.
TEST_F(FakeNcclTest, TwoCommunicatorsInTwoOrdersDoNotStop) {
  ncclComm_t more[ranks];
  cudaStream_t streams[ranks];
  join(more);
  for (Rank k = 0; k < ranks; ++k) {
    (void)cudaSetDevice(k);
    (void)cudaStreamCreateWithFlags(&streams[k], cudaStreamNonBlocking);
  }
  underSeveralOrders([&] {
    for (Rank k = 0; k < ranks; ++k) {
      const Call one = callOf(k), other{more[k], streams[k], one.source, one.target + 8};
      (void)allReduce(k == 0 ? one : other);
      (void)allReduce(k == 0 ? other : one);
    }
    EXPECT_EQ(settle(communicators_) + settle(more), "");
    finish();
    for (cudaStream_t stream : streams)
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(of(1, 8, 12), of(0, 0, 4));
  });
  for (const ncclComm_t communicator : more)
    (void)ncclCommAbort(communicator);
}

TEST_F(FakeNcclTest, IsRepeatedByAGraph) {
  cudaGraphExec_t graphs[ranks];
  EXPECT_EQ(meet(allReduce), "");
  finish();
  capture(allReduce, graphs);
  underSeveralOrders([&] {
    for (int launches = 0; launches < 3; ++launches)
      for (Rank k = 0; k < ranks; ++k) {
        (void)cudaMemsetAsync(targets_[k], 0, 16, streams_[k]);
        EXPECT_EQ(cudaGraphLaunch(graphs[k], streams_[k]), cudaSuccess);
      }
    EXPECT_EQ(meet(gather), "") << "what is enqueued behind it";
    finish();
    EXPECT_EQ(of(0, 4, 8), (Floats{200, 201, 202, 203}));
  });
}

TEST_F(FakeNcclTest, AnAbortEndsAKernelThatSpins) {
  EXPECT_EQ(meet(gather), "");
  enqueueOnFirst(gather);
  EXPECT_EQ(cudaStreamQuery(streams_[0]), cudaErrorNotReady);
  EXPECT_EQ(ncclCommAbort(communicators_[0]), ncclSuccess);
  EXPECT_EQ(cudaStreamSynchronize(streams_[0]), cudaSuccess);
  join(communicators_);
}

TEST_F(FakeNcclTest, MembersLeaveTogether) {
  EXPECT_EQ(ncclCommFinalize(communicators_[0]), ncclInProgress);
  EXPECT_EQ(settle(communicators_), "in progress: ");
  EXPECT_EQ(ncclCommFinalize(communicators_[1]), ncclInProgress);
  EXPECT_EQ(settle(communicators_), "");
  for (const ncclComm_t communicator : communicators_)
    EXPECT_EQ(ncclCommDestroy(communicator), ncclSuccess);
  EXPECT_EQ(fakeNccl().refused, 0);
  join(communicators_);
}

// What members do differently. NCCL hangs or gives wrong numbers.

TEST_F(FakeNcclTest, RefusesOtherCollectives) {
  clashes(
      "rank 0 is in all_gather of 4 float32, but rank 1 is in all_reduce of 4 float32, group 1 of their communicator",
      gather, allReduce);
}
TEST_F(FakeNcclTest, RefusesOtherCounts) {
  clashes("of 3 float32", gather,
          [](const Call &c) { return ncclAllGather(c.source, c.target, 3, ncclFloat32, c.communicator, c.stream); });
}
TEST_F(FakeNcclTest, RefusesOtherTypes) {
  clashes("of 4 int32", gather,
          [](const Call &c) { return ncclAllGather(c.source, c.target, 4, ncclInt32, c.communicator, c.stream); });
}
TEST_F(FakeNcclTest, RefusesOtherRoots) { clashes("with root 1", broadcastFrom(0), broadcastFrom(1)); }
TEST_F(FakeNcclTest, RefusesGroupsOfOtherLengths) {
  clashes("rank 0 makes a group of 1, but rank 1 makes one of 2", gather, group(gather, broadcastFrom(0)));
}
TEST_F(FakeNcclTest, RefusesMessagesOfOtherLengths) {
  clashes(
      "is in receive of 3 float32",
      [](const Call &c) { return ncclSend(c.source, 4, ncclFloat32, 1, c.communicator, c.stream); },
      [](const Call &c) { return ncclRecv(c.target, 3, ncclFloat32, 0, c.communicator, c.stream); });
}
TEST_F(FakeNcclTest, RefusesTwoThatSend) {
  clashes(
      "is in send of 4 float32",
      [](const Call &c) { return ncclSend(c.source, 4, ncclFloat32, 1, c.communicator, c.stream); },
      [](const Call &c) { return ncclSend(c.source, 4, ncclFloat32, 0, c.communicator, c.stream); });
}
TEST_F(FakeNcclTest, RefusesAGraphBesideDirectCalls) {
  cudaGraphExec_t graphs[ranks];
  EXPECT_EQ(meet(gather), "");
  finish();
  capture(gather, graphs);
  clashes(
      " launches from a graph",
      [&](const Call &c) {
        return cudaGraphLaunch(graphs[0], c.stream) == cudaSuccess ? ncclSuccess : ncclInternalError;
      },
      gather);
}

// Groups.

TEST_F(FakeNcclTest, RefusesAThreadThatEndsInAGroup) {
  ++misuses_;
  testing::internal::CaptureStderr();
  std::thread([] { (void)ncclGroupStart(); }).join();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("ncclGroupEnd is missing"), std::string::npos);
}
TEST_F(FakeNcclTest, RefusesToEndNoGroup) {
  refused(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart", [](const Call &) { return ncclGroupEnd(); });
}
TEST_F(FakeNcclTest, RefusesToLeaveInAGroup) {
  (void)ncclGroupStart();
  for (const auto leave : {ncclCommFinalize, ncclCommDestroy})
    refused(ncclInvalidUsage, "in a group that this thread began and has not ended",
            [&](const Call &c) { return leave(c.communicator); });
  (void)ncclGroupEnd();
}
TEST_F(FakeNcclTest, RefusesTwoStreamsInAGroup) {
  cudaStream_t other;
  (void)cudaSetDevice(0);
  (void)cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  refused(ncclInvalidUsage, "on two streams",
          group(gather, [&](const Call &c) { return gather({c.communicator, other, c.source, c.target + 8}); }));
}
TEST_F(FakeNcclTest, DropsAGroupWithACallThatWasRefused) {
  refused(ncclInvalidArgument, "is null",
          group(gather, [](const Call &c) { return gather({c.communicator, c.stream, nullptr, c.target}); }));
  EXPECT_EQ(cudaStreamSynchronize(streams_[0]), cudaSuccess);
}

// Addresses.

TEST_F(FakeNcclTest, RefusesOverlapsThatAreNotInPlace) {
  refused(ncclInvalidArgument, "source = target + rank * count", [](const Call &c) {
    return ncclAllGather(c.source, c.source + 2, 4, ncclFloat32, c.communicator, c.stream);
  });
  refused(ncclInvalidArgument, "target = source + rank * count", [](const Call &c) {
    return ncclReduceScatter(c.source, c.source + 4, 4, ncclFloat32, ncclSum, c.communicator, c.stream);
  });
  refused(ncclInvalidArgument, "source = target", [](const Call &c) {
    return ncclAllReduce(c.source, c.source + 1, 4, ncclFloat32, ncclSum, c.communicator, c.stream);
  });
}
TEST_F(FakeNcclTest, RefusesWhatIsNoMemory) {
  std::vector<float> host(16);
  float *freed = nullptr;
  (void)cudaSetDevice(0);
  (void)cudaMalloc(&freed, 64);
  (void)cudaFree(freed);
  const std::pair<float *, const char *> wrong[] = {
      {nullptr, "is null"},
      {host.data(), "is memory that is not CUDA's"},
      {freed, "is memory that was freed"},
      {sources_[0] + 13, "reaches beyond its memory"},
      {sources_[1], "is memory of GPU 1, and the communicator is of GPU 0"}};
  for (const auto &[address, why] : wrong)
    refused(ncclInvalidArgument, why,
            [&](const Call &c) { return gather({c.communicator, c.stream, address, c.target}); });
}
TEST_F(FakeNcclTest, RefusesMemoryThatIsFreedMeanwhile) {
  ++misuses_;
  EXPECT_EQ(meet(gather), "");
  enqueueOnFirst(gather);
  (void)cudaFree(sources_[0]);
  EXPECT_EQ(cudaStreamSynchronize(streams_[0]), cudaErrorIllegalAddress);
  EXPECT_NE(std::string(cudaGetErrorString(cudaErrorIllegalAddress))
                .find("(all_gather of 4 float32) touches memory that was freed"),
            std::string::npos);
}
TEST_F(FakeNcclTest, RefusesSourcesThatAreWrittenMeanwhile) {
  overwritten([](const Call &c) { return c.source; },
              "the source of all_gather of 4 float32 was written while NCCL read it");
}
TEST_F(FakeNcclTest, RefusesTargetsThatAreWrittenMeanwhile) {
  overwritten([](const Call &c) { return c.target; },
              "the target of all_gather of 4 float32 was written while NCCL wrote it");
}

// Numbers and types.

TEST_F(FakeNcclTest, RefusesSumsOfBytes) {
  refused(ncclInvalidArgument, "bytes of wider numbers would be added one by one", [](const Call &c) {
    return ncclAllReduce(c.source, c.target, 4, ncclUint8, ncclSum, c.communicator, c.stream);
  });
}
TEST_F(FakeNcclTest, RefusesMaxima) {
  refused(ncclInvalidArgument, "the fake knows sums only", [](const Call &c) {
    return ncclAllReduce(c.source, c.target, 4, ncclFloat32, ncclMax, c.communicator, c.stream);
  });
}
TEST_F(FakeNcclTest, RefusesRootsThatAreNoRank) {
  refused(ncclInvalidArgument, "rank 2 of a communicator of 2", broadcastFrom(2));
}
TEST_F(FakeNcclTest, RefusesAMessageToOneself) {
  refused(ncclInvalidArgument, "to oneself",
          [](const Call &c) { return ncclSend(c.source, 4, ncclFloat32, 0, c.communicator, c.stream); });
}

// Streams and captures.

TEST_F(FakeNcclTest, RefusesStreamsOfAnotherGpu) {
  refused(ncclInvalidUsage, "a stream of GPU 1 for a communicator of GPU 0",
          [&](const Call &c) { return gather({c.communicator, streams_[1], c.source, c.target}); });
  refused(ncclInvalidArgument, "no stream",
          [&](const Call &c) { return gather({c.communicator, nullptr, c.source, c.target}); });
}
TEST_F(FakeNcclTest, RefusesToJoinWhileAStreamCaptures) {
  ncclUniqueId id;
  ncclComm_t made;
  cudaGraph_t graph;
  (void)ncclGetUniqueId(&id);
  (void)cudaSetDevice(0);
  (void)cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeGlobal);
  refused(ncclUnhandledCudaError, "ncclCommInitRankConfig while a stream is capturing",
          [&](const Call &) { return begin(&made, id, 0); });
  (void)cudaStreamEndCapture(streams_[0], &graph);
}
TEST_F(FakeNcclTest, RefusesKernelsThatAreLoadedBesideIts) {
  ++misuses_;
  EXPECT_EQ(meet(gather), "");
  enqueueOnFirst(gather);
  const auto launch = [&](const char *kernel) { return submit(streams_[0], {kernel, [] {}, {}}); };
  (void)cudaSetDevice(0);
  EXPECT_EQ(launch("late kernel"), cudaErrorLaunchFailure);
  EXPECT_NE(std::string(cudaGetErrorString(cudaErrorLaunchFailure)).find("late kernel is loaded at its first launch"),
            std::string::npos);
}

// Communicators.

TEST_F(FakeNcclTest, RefusesTwoRanksOfOneGpu) {
  ++misuses_;
  ncclUniqueId id;
  ncclComm_t made[ranks];
  (void)ncclGetUniqueId(&id);
  (void)cudaSetDevice(0);
  for (Rank k = 0; k < ranks; ++k)
    EXPECT_EQ(begin(&made[k], id, k), ncclInProgress);
  EXPECT_EQ(settle(made), "invalid usage: ranks 0 and 1 of a communicator are both on GPU 0");
  for (const ncclComm_t communicator : made)
    (void)ncclCommAbort(communicator);
}
TEST_F(FakeNcclTest, RefusesMembersThatDoNotFit) {
  ncclUniqueId id;
  ncclComm_t made;
  (void)ncclGetUniqueId(&id);
  EXPECT_EQ(begin(&made, id, 0), ncclInProgress);
  const auto member = [&](int rank, int of, int blocking) {
    return [=](const Call &) {
      ncclComm_t other;
      return begin(&other, id, rank, of, blocking);
    };
  };
  refused(ncclInvalidUsage, "two members are rank 0", member(0, ranks, 0));
  refused(ncclInvalidUsage, "rank 1 says that there are 3 ranks, and another one says 2", member(1, 3, 0));
  refused(ncclInvalidArgument, "rank 2 of 2", member(2, 2, 0));
  refused(ncclInvalidArgument, "communicators only that do not block", member(1, ranks, 1));
  (void)ncclCommAbort(made);
}
TEST_F(FakeNcclTest, RefusesCallsBeforeTheOneBeforeIsOver) {
  (void)gather(callOf(0));
  refused(ncclInvalidArgument, "while the call before is in progress", gather);
  ncclUniqueId id;
  ncclComm_t made;
  (void)ncclGetUniqueId(&id);
  EXPECT_EQ(begin(&made, id, 0), ncclInProgress);
  refused(ncclInvalidArgument, "while the call before is in progress",
          [&](const Call &c) { return gather({made, c.stream, c.source, c.target}); });
  (void)ncclCommAbort(made);
}
TEST_F(FakeNcclTest, RefusesCallsAfterTheEnd) {
  refused(ncclInvalidUsage, "ncclCommDestroy before ncclCommFinalize has ended",
          [](const Call &c) { return ncclCommDestroy(c.communicator); });
  for (const ncclComm_t communicator : communicators_)
    (void)ncclCommFinalize(communicator);
  refused(ncclInvalidUsage, "after ncclCommFinalize", gather);
  EXPECT_EQ(settle(communicators_), "");
  (void)ncclCommDestroy(communicators_[0]);
  refused(ncclInvalidArgument, "of a communicator that was destroyed", gather);
  (void)ncclCommAbort(communicators_[1]);
  refused(ncclInvalidArgument, "of a communicator that was aborted",
          [&](const Call &) { return ncclCommAbort(communicators_[1]); });
  refused(ncclInvalidArgument, "of what is no communicator", [](const Call &) { return ncclCommFinalize(nullptr); });
  join(communicators_);
}
TEST_F(FakeNcclTest, RefusesRegistrationsThatAreNotGivenBackOnce) {
  void *handle = nullptr;
  float *memory = nullptr;
  (void)cudaSetDevice(0);
  (void)cudaMalloc(&memory, 64);
  ASSERT_EQ(ncclCommRegister(communicators_[0], memory, 64, &handle), ncclSuccess);
  refused(ncclInvalidUsage, "ncclCommDeregister is missing",
          [](const Call &c) { return ncclCommFinalize(c.communicator); });
  EXPECT_EQ(ncclCommDeregister(communicators_[0], handle), ncclSuccess);
  refused(ncclInvalidArgument, "or was given back before",
          [&](const Call &c) { return ncclCommDeregister(c.communicator, handle); });
  ASSERT_EQ(ncclCommRegister(communicators_[0], memory, 64, &handle), ncclSuccess);
  (void)cudaFree(memory);
  refused(ncclInvalidUsage, "registered memory was freed before",
          [&](const Call &c) { return ncclCommDeregister(c.communicator, handle); });
}

} // namespace
} // namespace shim
