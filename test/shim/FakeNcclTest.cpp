// What the fake NCCL does.
#include "test/shim/FakeNcclTesting.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>

namespace shim {
namespace {

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

} // namespace
} // namespace shim
