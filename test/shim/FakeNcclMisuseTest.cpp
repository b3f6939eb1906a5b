// What the fake NCCL refuses: each misuse once, with its sentence.
#include "test/shim/FakeNcclTesting.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace shim {
namespace {

class FakeNcclMisuseTest : public FakeNcclTest {
protected:
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
};

// What members do differently. NCCL hangs or gives wrong numbers.

TEST_F(FakeNcclMisuseTest, RefusesOtherCollectives) {
  clashes(
      "rank 0 is in all_gather of 4 float32, but rank 1 is in all_reduce of 4 float32, group 1 of their communicator",
      gather, allReduce);
}
TEST_F(FakeNcclMisuseTest, RefusesOtherCounts) {
  clashes("of 3 float32", gather,
          [](const Call &c) { return ncclAllGather(c.source, c.target, 3, ncclFloat32, c.communicator, c.stream); });
}
TEST_F(FakeNcclMisuseTest, RefusesOtherTypes) {
  clashes("of 4 int32", gather,
          [](const Call &c) { return ncclAllGather(c.source, c.target, 4, ncclInt32, c.communicator, c.stream); });
}
TEST_F(FakeNcclMisuseTest, RefusesOtherRoots) { clashes("with root 1", broadcastFrom(0), broadcastFrom(1)); }
TEST_F(FakeNcclMisuseTest, RefusesGroupsOfOtherLengths) {
  clashes("rank 0 makes a group of 1, but rank 1 makes one of 2", gather, group(gather, broadcastFrom(0)));
}
TEST_F(FakeNcclMisuseTest, RefusesMessagesOfOtherLengths) {
  clashes(
      "is in receive of 3 float32",
      [](const Call &c) { return ncclSend(c.source, 4, ncclFloat32, 1, c.communicator, c.stream); },
      [](const Call &c) { return ncclRecv(c.target, 3, ncclFloat32, 0, c.communicator, c.stream); });
}
TEST_F(FakeNcclMisuseTest, RefusesTwoThatSend) {
  clashes(
      "is in send of 4 float32",
      [](const Call &c) { return ncclSend(c.source, 4, ncclFloat32, 1, c.communicator, c.stream); },
      [](const Call &c) { return ncclSend(c.source, 4, ncclFloat32, 0, c.communicator, c.stream); });
}
TEST_F(FakeNcclMisuseTest, RefusesAGraphBesideDirectCalls) {
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

TEST_F(FakeNcclMisuseTest, RefusesAThreadThatEndsInAGroup) {
  ++misuses_;
  testing::internal::CaptureStderr();
  std::thread([] { (void)ncclGroupStart(); }).join();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("ncclGroupEnd is missing"), std::string::npos);
}
TEST_F(FakeNcclMisuseTest, RefusesToEndNoGroup) {
  refused(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart", [](const Call &) { return ncclGroupEnd(); });
}
TEST_F(FakeNcclMisuseTest, RefusesToLeaveInAGroup) {
  (void)ncclGroupStart();
  for (const auto leave : {ncclCommFinalize, ncclCommDestroy})
    refused(ncclInvalidUsage, "in a group that this thread began and has not ended",
            [&](const Call &c) { return leave(c.communicator); });
  (void)ncclGroupEnd();
}
TEST_F(FakeNcclMisuseTest, RefusesTwoStreamsInAGroup) {
  cudaStream_t other;
  (void)cudaSetDevice(0);
  (void)cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  refused(ncclInvalidUsage, "on two streams",
          group(gather, [&](const Call &c) { return gather({c.communicator, other, c.source, c.target + 8}); }));
}
TEST_F(FakeNcclMisuseTest, DropsAGroupWithACallThatWasRefused) {
  refused(ncclInvalidArgument, "is null",
          group(gather, [](const Call &c) { return gather({c.communicator, c.stream, nullptr, c.target}); }));
  EXPECT_EQ(cudaStreamSynchronize(streams_[0]), cudaSuccess);
}

// Addresses.

TEST_F(FakeNcclMisuseTest, RefusesOverlapsThatAreNotInPlace) {
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
TEST_F(FakeNcclMisuseTest, RefusesWhatIsNoMemory) {
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
TEST_F(FakeNcclMisuseTest, RefusesMemoryThatIsFreedMeanwhile) {
  ++misuses_;
  EXPECT_EQ(meet(gather), "");
  enqueueOnFirst(gather);
  (void)cudaFree(sources_[0]);
  EXPECT_EQ(cudaStreamSynchronize(streams_[0]), cudaErrorIllegalAddress);
  EXPECT_NE(std::string(cudaGetErrorString(cudaErrorIllegalAddress))
                .find("(all_gather of 4 float32) touches memory that was freed"),
            std::string::npos);
}
TEST_F(FakeNcclMisuseTest, RefusesSourcesThatAreWrittenMeanwhile) {
  overwritten([](const Call &c) { return c.source; },
              "the source of all_gather of 4 float32 was written while NCCL read it");
}
TEST_F(FakeNcclMisuseTest, RefusesTargetsThatAreWrittenMeanwhile) {
  overwritten([](const Call &c) { return c.target; },
              "the target of all_gather of 4 float32 was written while NCCL wrote it");
}

// Numbers and types.

TEST_F(FakeNcclMisuseTest, RefusesSumsOfBytes) {
  refused(ncclInvalidArgument, "bytes of wider numbers would be added one by one", [](const Call &c) {
    return ncclAllReduce(c.source, c.target, 4, ncclUint8, ncclSum, c.communicator, c.stream);
  });
}
TEST_F(FakeNcclMisuseTest, RefusesMaxima) {
  refused(ncclInvalidArgument, "the fake knows sums only", [](const Call &c) {
    return ncclAllReduce(c.source, c.target, 4, ncclFloat32, ncclMax, c.communicator, c.stream);
  });
}
TEST_F(FakeNcclMisuseTest, RefusesRootsThatAreNoRank) {
  refused(ncclInvalidArgument, "rank 2 of a communicator of 2", broadcastFrom(2));
}
TEST_F(FakeNcclMisuseTest, RefusesAMessageToOneself) {
  refused(ncclInvalidArgument, "to oneself",
          [](const Call &c) { return ncclSend(c.source, 4, ncclFloat32, 0, c.communicator, c.stream); });
}

// Streams and captures.

TEST_F(FakeNcclMisuseTest, RefusesStreamsOfAnotherGpu) {
  refused(ncclInvalidUsage, "a stream of GPU 1 for a communicator of GPU 0",
          [&](const Call &c) { return gather({c.communicator, streams_[1], c.source, c.target}); });
  refused(ncclInvalidArgument, "no stream",
          [&](const Call &c) { return gather({c.communicator, nullptr, c.source, c.target}); });
}
TEST_F(FakeNcclMisuseTest, RefusesToJoinWhileAStreamCaptures) {
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
TEST_F(FakeNcclMisuseTest, RefusesKernelsThatAreLoadedBesideIts) {
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

TEST_F(FakeNcclMisuseTest, RefusesTwoRanksOfOneGpu) {
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
TEST_F(FakeNcclMisuseTest, RefusesMembersThatDoNotFit) {
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
TEST_F(FakeNcclMisuseTest, RefusesCallsBeforeTheOneBeforeIsOver) {
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
TEST_F(FakeNcclMisuseTest, RefusesCapturesThatBeginOrEndBeforeItHasEnqueued) {
  for (const bool isCaptured : {true, false}) {
    ++misuses_;
    const auto begin = [&] { (void)cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeRelaxed); };
    cudaGraph_t graph;
    if (isCaptured)
      begin();
    EXPECT_EQ(gather(callOf(0)), ncclInProgress);
    isCaptured ? (void)cudaStreamEndCapture(streams_[0], &graph) : begin();
    (void)gather(callOf(1));
    EXPECT_EQ(settle(communicators_), std::string("invalid usage: a capture of the stream of a group ") +
                                          (isCaptured ? "ended" : "began") + " before NCCL had enqueued it");
    if (!isCaptured)
      (void)cudaStreamEndCapture(streams_[0], &graph);
    for (const ncclComm_t communicator : communicators_)
      (void)ncclCommAbort(communicator);
    reviveDevices();
    join(communicators_);
  }
}
TEST_F(FakeNcclMisuseTest, RefusesCallsAfterTheEnd) {
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
TEST_F(FakeNcclMisuseTest, RefusesRegistrationsThatAreNotGivenBackOnce) {
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
