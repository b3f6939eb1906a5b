// Every misuse of streams, events and graphs is found under some seed, and under none where it is not there.
#include "test/shim/FakeRuntimeTesting.h"
#include "test/shim/cuda_runtime.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>

namespace shim {

namespace {

const Misuse unordered[] = {
    {"a wait that is missing between two streams",
     [](World &w, bool planted) {
       w.fill(w.device[0], 7, 0);
       w.record(0, 0);
       if (!planted)
         w.wait(1, 0);
       w.copy(w.device[1], w.device[0], 1);
       w.await();
       w.expect(w.device[1], 7);
     },
     "wrong bytes"},
    {"an event that is recorded before the work it stands for",
     [](World &w, bool planted) {
       if (planted)
         w.record(0, 0);
       w.fill(w.device[0], 7, 0);
       if (!planted)
         w.record(0, 0);
       w.wait(1, 0);
       w.copy(w.device[1], w.device[0], 1);
       w.await();
       w.expect(w.device[1], 7);
     },
     "wrong bytes"},
    {"an event that was recorded anew before the wait that meant the record before",
     [](World &w, bool planted) { // the second record may stand for less: here of an idle stream
       w.fill(w.device[0], 7, 0);
       w.record(0, 0);
       if (planted)
         w.record(0, 1);
       w.wait(1, 0);
       w.copy(w.device[1], w.device[0], 1);
       w.await();
       w.expect(w.device[1], 7);
     },
     "wrong bytes"},
};

TEST(FakeRuntime, FindsWorkThatNobodyOrdered) { expectEachIsFound(unordered); }

const Misuse earlyOrFreed[] = {
    {"memory that is read by the host before its stream was awaited",
     [](World &w, bool planted) {
       w.fill(w.device[0], 7, 0);
       w.host[0] = 0;
       w.copy(w.host, w.device[0], 0);
       if (!planted)
         w.await();
       if (w.host[0] != 7)
         w.wrong = "wrong bytes";
       w.await();
     },
     "wrong bytes"},
    {"pinned memory that is written anew while a copy of it is pending",
     [](World &w, bool planted) {
       w.host[0] = 7;
       w.copy(w.device[0], w.host, 0);
       if (!planted)
         w.await();
       w.host[0] = 9;
       w.copy(w.device[1], w.device[0], 0);
       w.await();
       std::array<uint8_t, count> seen{};
       w.copy(seen.data(), w.device[1], 0);
       if (seen[0] != 7)
         w.wrong = "wrong bytes";
     },
     "wrong bytes"},
    {"memory that is freed while work on it is pending",
     [](World &w, bool planted) {
       uint8_t *memory = nullptr;
       w.ok(cudaMalloc(&memory, count));
       w.fill(memory, 7, 0);
       if (!planted)
         w.await();
       w.ok(cudaFree(memory));
       w.await();
     },
     "a fill touches memory that was freed"},
    {"memory that is freed twice",
     [](World &w, bool planted) {
       uint8_t *memory = nullptr;
       w.ok(cudaMalloc(&memory, count));
       w.ok(cudaFree(memory));
       if (planted)
         w.ok(cudaFree(memory));
     },
     "was freed before"},
};

TEST(FakeRuntime, FindsMemoryThatIsUsedTooEarlyOrFreed) { expectEachIsFound(earlyOrFreed); }

const Misuse besideCaptures[] = {
    {"cudaStreamSynchronize of a stream that is capturing",
     [](World &w, bool planted) {
       w.begin(0);
       w.fill(w.device[0], 7, 0);
       if (planted)
         w.ok(cudaStreamSynchronize(w.streams[0]));
       w.launch(w.end());
       w.expect(w.device[0], 7);
     },
     "cudaStreamSynchronize of a stream that is capturing"},
    {"cudaStreamQuery of a stream that was forked from a capture",
     [](World &w, bool planted) {
       w.begin(0);
       w.record(0, 0);
       w.wait(1, 0);
       w.fill(w.device[0], 7, 1);
       if (planted)
         w.ok(cudaStreamQuery(w.streams[1]));
       w.record(1, 1);
       w.wait(0, 1);
       w.launch(w.end());
       w.expect(w.device[0], 7);
     },
     "cudaStreamQuery of a stream that is capturing"},
    {"cudaMalloc beside a capture that is not relaxed",
     [](World &w, bool planted) {
       uint8_t *memory = nullptr;
       w.begin(0, planted ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeRelaxed);
       w.ok(cudaMalloc(&memory, count));
       w.fill(w.device[0], 7, 0);
       w.launch(w.end());
       w.expect(w.device[0], 7);
       (void)cudaFree(memory);
     },
     "cudaMalloc while a stream is capturing"},
};

TEST(FakeRuntime, FindsCallsThatACaptureForbids) { expectEachIsFound(besideCaptures); }

const Misuse forks[] = {
    {"a fork of a capture that never joins",
     [](World &w, bool planted) {
       w.begin(0);
       w.record(0, 0);
       w.wait(1, 0);
       w.fill(w.device[0], 7, 1);
       w.record(1, 1);
       if (!planted)
         w.wait(0, 1);
       w.launch(w.end());
       w.expect(w.device[0], 7);
     },
     "a capture has a fork that was not joined"},
    {"a fork that joins before its last work",
     [](World &w, bool planted) {
       w.begin(0);
       w.record(0, 0);
       w.wait(1, 0);
       w.record(1, 1);
       w.fill(w.device[0], 7, 1);
       if (!planted)
         w.record(1, 1);
       w.wait(0, 1);
       w.launch(w.end());
       w.expect(w.device[0], 7);
     },
     "a capture has a fork that was not joined"},
    {"a capture that ends on another stream than it began on",
     [](World &w, bool planted) {
       w.begin(0);
       w.record(0, 0);
       w.wait(1, 0);
       cudaGraph_t graph = nullptr;
       if (planted)
         w.ok(cudaStreamEndCapture(w.streams[1], &graph));
       w.record(1, 1);
       w.wait(0, 1);
       (void)cudaGraphExecDestroy(w.end());
     },
     "on another stream than it began on"},
};

TEST(FakeRuntime, FindsForksThatAreNotJoined) { expectEachIsFound(forks); }

const Misuse crossing[] = {
    {"a capture that waits for an event from outside",
     [](World &w, bool planted) {
       w.fill(w.device[0], 7, 1);
       w.record(0, 1);
       if (!planted)
         w.wait(0, 0);
       w.begin(0);
       if (planted)
         w.wait(0, 0);
       w.copy(w.device[1], w.device[0], 0);
       w.launch(w.end());
       w.expect(w.device[1], 7);
     },
     "an event that was recorded outside"},
    {"a wait for an event of a capture that has ended",
     [](World &w, bool planted) {
       w.begin(0);
       w.fill(w.device[0], 7, 0);
       w.record(0, 0);
       w.launch(w.end());
       if (!planted)
         w.record(0, 0);
       w.wait(1, 0);
       w.copy(w.device[1], w.device[0], 1);
       w.await();
       w.expect(w.device[1], 7);
     },
     "last recorded in a capture"},
};

TEST(FakeRuntime, FindsEventsThatCrossTheEndsOfACapture) { expectEachIsFound(crossing); }

const Misuse ofGraphs[] = {
    {"a missing edge in a graph",
     [](World &w, bool planted) {
       w.begin(0);
       w.record(0, 0);
       w.wait(1, 0);
       w.fill(w.device[0], 7, 0);
       w.record(1, 0);
       if (!planted)
         w.wait(1, 1);
       w.copy(w.device[1], w.device[0], 1);
       w.record(2, 1);
       w.wait(0, 2);
       w.launch(w.end());
       w.expect(w.device[1], 7);
     },
     "wrong bytes"},
    {"a graph that is launched again while the source of its copy has changed",
     [](World &w, bool planted) {
       w.begin(0);
       w.copy(w.device[0], w.host, 0);
       w.copy(w.device[1], w.device[0], 0);
       const cudaGraphExec_t graph = w.end();
       w.host[0] = 7;
       w.launch(graph);
       if (!planted)
         w.await();
       w.host[0] = 9; // the next step's
       std::array<uint8_t, count> seen{};
       w.copy(seen.data(), w.device[1], 0);
       w.launch(graph);
       w.await();
       if (seen[0] != 7)
         w.wrong = "wrong bytes";
     },
     "wrong bytes"},
    {"work beside a graph that is not behind it",
     [](World &w, bool planted) {
       w.begin(0);
       w.fill(w.device[0], 7, 0);
       w.launch(w.end());
       w.record(0, 0);
       if (!planted)
         w.wait(1, 0);
       w.copy(w.device[1], w.device[0], 1);
       w.await();
       w.expect(w.device[1], 7);
     },
     "wrong bytes"},
};

TEST(FakeRuntime, FindsGraphsThatNobodyOrdered) { expectEachIsFound(ofGraphs); }

const Misuse ofHandles[] = {
    {"a stream that is used after it was destroyed",
     [](World &w, bool planted) {
       cudaStream_t stream = nullptr;
       w.ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
       w.ok(cudaStreamDestroy(stream));
       w.ok(cudaMemsetAsync(w.device[0], 7, count, planted ? stream : w.streams[0]));
     },
     "cudaErrorInvalidResourceHandle"},
    {"an event of another GPU than its stream's",
     [](World &w, bool planted) {
       cudaEvent_t event = nullptr;
       w.ok(cudaSetDevice(planted ? 1 : 0));
       w.ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
       w.ok(cudaSetDevice(0));
       w.ok(cudaEventRecord(event, w.streams[0]));
       (void)cudaEventDestroy(event);
     },
     "an event of GPU 1 is recorded on a stream of GPU 0"},
};

TEST(FakeRuntime, FindsHandlesThatAreGoneOrOfAnotherGpu) { expectEachIsFound(ofHandles); }

void addOne(uint8_t *memory) { ++*memory; }

TEST(FakeRuntime, AKernelRunsOnTheGpuThatIsCurrent) {
  World world(3);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  launch<addOne>(1, 1, world.streams[0], world.device[0]);
  const cudaError_t error = cudaGetLastError();
  EXPECT_STREQ(cudaGetErrorString(error), "addOne is launched on a stream of GPU 0 while GPU 1 is current");
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST(FakeRuntime, AKernelReadsMemoryOfItsPeersOnly) {
  World world(3);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (const bool peers : {false, true}) {
    if (peers) {
      ASSERT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
    }
    launch<addOne>(1, 1, stream, world.device[0]);
    const cudaError_t error = cudaStreamSynchronize(stream);
    EXPECT_EQ(error, peers ? cudaSuccess : cudaErrorIllegalAddress);
    if (!peers) {
      EXPECT_STREQ(cudaGetErrorString(error), "addOne on GPU 1 touches memory of GPU 0 without peer access");
      EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress) << "it ends every later call";
    }
    reviveDevices();
  }
  (void)cudaStreamDestroy(stream);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST(FakeRuntime, NothingRunsBeforeSomebodyWaits) {
  World world(4);
  world.fill(world.host, 7, 0);
  world.record(0, 0);
  EXPECT_NE(world.host[0], 7);
  EXPECT_EQ(cudaStreamQuery(world.streams[0]), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady) << "as the real one, it stays behind";
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  world.await();
  EXPECT_EQ(world.host[0], 7);
  EXPECT_EQ(cudaStreamQuery(world.streams[0]), cudaSuccess);
}

TEST(FakeRuntime, PageableMemoryIsTakenAtTheCall) {
  World world(4);
  std::array<uint8_t, count> bytes{7};
  world.copy(world.device[0], bytes.data(), 0);
  bytes[0] = 9;
  std::array<uint8_t, count> seen{};
  world.copy(seen.data(), world.device[0], 0); // and is there when the call returns
  EXPECT_EQ(seen[0], 7);
  EXPECT_EQ(world.wrong, "");
}

} // namespace

} // namespace shim

int main(int argc, char **argv) {
  ::setenv("DS_FAKE_CUDA_GPUS", "2", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
