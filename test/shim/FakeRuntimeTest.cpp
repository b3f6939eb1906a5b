// Every misuse of streams, events, graphs and libraries of PTX is found under some seed, and under none where it is not
// there.
#include "test/shim/FakeRuntime.h"
#include "test/shim/cuda_runtime.h"

#include <array>
#include <bit>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace shim {

namespace {

constexpr size_t count = 64;
constexpr uint64_t seeds = 12;

/// Two streams, events, device memory and pinned memory of the host, with nothing left over of the run before.
class World {
public:
  explicit World(uint64_t seed) {
    reviveDevices();
    (void)cudaGetLastError();
    setSchedule(seed);
    for (cudaStream_t &stream : streams)
      ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (cudaEvent_t &event : events)
      ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (uint8_t *&memory : device)
      ok(cudaMalloc(&memory, count));
    ok(cudaHostAlloc(reinterpret_cast<void **>(&host), count, cudaHostAllocDefault));
    for (uint8_t *memory : device)
      ok(cudaMemsetAsync(memory, 0, count, streams[0]));
    ok(cudaStreamSynchronize(streams[0]));
  }
  ~World() {
    cudaGraph_t graph = nullptr;
    (void)cudaStreamEndCapture(streams[0], &graph);
    (void)cudaGraphDestroy(graph);
    reviveDevices();
    for (cudaStream_t stream : streams)
      (void)cudaStreamDestroy(stream);
    for (cudaEvent_t event : events)
      (void)cudaEventDestroy(event);
    for (uint8_t *memory : device)
      (void)cudaFree(memory);
    (void)cudaFreeHost(host);
  }
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  /// Keeps the first thing that is wrong.
  void ok(cudaError_t error) {
    if (error != cudaSuccess && wrong.empty())
      wrong = cudaGetErrorString(error);
  }
  void expect(const uint8_t *memory, uint8_t value) {
    std::array<uint8_t, count> seen{};
    ok(cudaMemcpyAsync(seen.data(), memory, count, cudaMemcpyDefault, streams[0]));
    for (const uint8_t byte : seen)
      if (byte != value && wrong.empty())
        wrong = "wrong bytes";
  }
  void fill(uint8_t *memory, uint8_t value, int stream) {
    ok(cudaMemsetAsync(memory, value, count, streams[size_t(stream)]));
  }
  void copy(void *to, const void *from, int stream) {
    ok(cudaMemcpyAsync(to, from, count, cudaMemcpyDefault, streams[size_t(stream)]));
  }
  void record(int event, int stream) { ok(cudaEventRecord(events[size_t(event)], streams[size_t(stream)])); }
  void wait(int stream, int event) { ok(cudaStreamWaitEvent(streams[size_t(stream)], events[size_t(event)], 0)); }
  void await() {
    ok(cudaStreamSynchronize(streams[0]));
    ok(cudaStreamSynchronize(streams[1]));
  }
  void begin(int stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed) {
    ok(cudaStreamBeginCapture(streams[size_t(stream)], mode));
  }
  /// Of a capture on stream 0. May be nullptr.
  cudaGraphExec_t end() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ok(cudaStreamEndCapture(streams[0], &graph));
    if (graph != nullptr)
      ok(cudaGraphInstantiate(&executable, graph, 0));
    (void)cudaGraphDestroy(graph);
    return executable;
  }
  void launch(cudaGraphExec_t executable, int stream = 0) {
    if (executable != nullptr)
      ok(cudaGraphLaunch(executable, streams[size_t(stream)]));
  }

  std::array<cudaStream_t, 2> streams{};
  std::array<cudaEvent_t, 3> events{};
  std::array<uint8_t *, 3> device{};
  uint8_t *host = nullptr;
  std::string wrong;
};

/// to[i] = from[i] + 1 of bytes, a thread each.
constexpr const char *addOnePtx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry add_one(.param .u64 to, .param .u64 from, .param .u32 n)
.maxntid 64
{
  .reg .pred %p<2>; .reg .b32 %r<7>; .reg .b64 %rd<6>;
  ld.param.b64 %rd1, [to]; ld.param.b64 %rd2, [from]; ld.param.b32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1; @%p1 bra end;
  cvt.u64.u32 %rd3, %r5; add.s64 %rd4, %rd2, %rd3; add.s64 %rd5, %rd1, %rd3;
  ld.global.u8 %r6, [%rd4]; add.s32 %r6, %r6, 1; st.global.u8 [%rd5], %r6;
end: ret;
})";

/// A library of it, and launches of its kernel.
class AddOne {
public:
  explicit AddOne(World &world, const std::string &text = addOnePtx, const char *name = "add_one") : world_(world) {
    world_.ok(cudaLibraryLoadData(&library_, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    if (library_ != nullptr)
      world_.ok(cudaLibraryGetKernel(&kernel_, library_, name));
  }
  ~AddOne() { unload(); }
  AddOne(const AddOne &) = delete;
  AddOne &operator=(const AddOne &) = delete;

  void launch(const uint8_t *to, const uint8_t *from, int stream = 0, uint32_t n = count, unsigned threads = 16) {
    void *arguments[] = {static_cast<void *>(&to), static_cast<void *>(&from), &n};
    const dim3 blocks((n + threads - 1) / threads);
    world_.ok(cudaLaunchKernel(kernel_, blocks, dim3(threads), arguments, 0, world_.streams[size_t(stream)]));
    to = from = nullptr; // the launch has its own
  }
  void unload() {
    if (library_ != nullptr && !unloaded_)
      world_.ok(cudaLibraryUnload(library_));
    unloaded_ = true;
  }

private:
  World &world_;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  bool unloaded_ = false;
};

/// The text with another part.
std::string with(std::string text, const std::string &part, const std::string &other) {
  return text.replace(text.find(part), part.size(), other);
}

struct Misuse {
  const char *name;
  void (*run)(World &world, bool planted);
  const char *found; ///< a part of what is said
};

const Misuse misuses[] = {
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
    {"PTX that a wait is missing for",
     [](World &w, bool planted) {
       AddOne ptx(w);
       w.fill(w.device[0], 6, 0);
       ptx.launch(w.device[1], w.device[0]);
       w.record(0, 0);
       if (!planted)
         w.wait(1, 0);
       ptx.launch(w.device[2], w.device[1], 1);
       w.await();
       w.expect(w.device[2], 8);
     },
     "wrong bytes"},
    {"PTX whose threads pass on what they write",
     [](World &w, bool planted) {
       AddOne ptx(w);
       w.fill(w.device[0], 6, 0);
       ptx.launch(w.device[0] + (planted ? 1 : 0), w.device[0], 0, planted ? count - 1 : count);
       w.await();
       std::array<uint8_t, count> seen{};
       w.copy(seen.data(), w.device[0], 0);
       if (seen[count / 2] != 7)
         w.wrong = "wrong bytes";
     },
     "wrong bytes"},
    {"PTX that reads behind an allocation",
     [](World &w, bool planted) {
       AddOne ptx(w);
       ptx.launch(w.device[1], w.device[0] + (planted ? 1 : 0));
       w.await();
     },
     "entry 'add_one', block 3, thread 15, line 12 ('ld.global.u8 %r6, [%rd4]; add.s32 %r6, %r6, 1; st.global.u8 "
     "[%rd5], %r6;') reads 1 bytes outside of every allocation"},
    {"PTX that writes the host's own memory",
     [](World &w, bool planted) {
       AddOne ptx(w);
       std::array<uint8_t, count> pageable{};
       ptx.launch(planted ? pageable.data() : w.host, w.device[0]);
       w.await();
     },
     "writes 1 bytes outside of every allocation"},
    {"memory that is freed while PTX on it is pending",
     [](World &w, bool planted) {
       AddOne ptx(w);
       uint8_t *memory = nullptr;
       w.ok(cudaMalloc(&memory, count));
       ptx.launch(memory, w.device[0]);
       if (!planted)
         w.await();
       w.ok(cudaFree(memory));
       w.await();
     },
     "writes 1 bytes of memory that was freed"},
    {"PTX on more threads than it is compiled for",
     [](World &w, bool planted) {
       AddOne ptx(w);
       ptx.launch(w.device[1], w.device[0], 0, count, planted ? 65 : 64);
       w.await();
     },
     "add_one is launched with 65 threads a block, and is compiled for 64"},
    {"a launch of PTX whose library was unloaded",
     [](World &w, bool planted) {
       AddOne ptx(w);
       if (planted)
         ptx.unload();
       ptx.launch(w.device[1], w.device[0]);
       w.await();
     },
     "a launch of what is no kernel, or of a library that was unloaded"},
    {"a library that is unloaded while its PTX is pending",
     [](World &w, bool planted) {
       AddOne ptx(w);
       ptx.launch(w.device[1], w.device[0]);
       if (!planted)
         w.await();
       ptx.unload();
       w.await();
     },
     "add_one runs after its library was unloaded"},
    {"a graph that outlives the library of its PTX",
     [](World &w, bool planted) {
       AddOne ptx(w);
       w.fill(w.device[0], 6, 0);
       w.begin(0);
       ptx.launch(w.device[1], w.device[0]);
       ptx.launch(w.device[2], w.device[1]);
       const cudaGraphExec_t graph = w.end();
       w.launch(graph);
       w.expect(w.device[2], 8);
       if (planted) {
         ptx.unload();
         w.launch(graph);
         w.await();
       }
     },
     "add_one runs after its library was unloaded"},
    {"a library that is loaded beside a capture that is not relaxed",
     [](World &w, bool planted) {
       w.begin(0, planted ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeRelaxed);
       const AddOne ptx(w);
       (void)cudaGraphExecDestroy(w.end());
     },
     "cudaLibraryLoadData while a stream is capturing"},
    {"PTX that does not read",
     [](World &w, bool planted) { AddOne(w, planted ? with(addOnePtx, "add.s32", "add.f32") : addOnePtx); },
     "PTX line 12, 'ld.global.u8 %r6, [%rd4]; add.f32 %r6, %r6, 1; st.global.u8 [%rd5], %r6;': add.f32 has no "
     "rounding"},
    {"PTX for a GPU that is not there",
     [](World &w, bool planted) { AddOne(w, planted ? with(addOnePtx, "sm_90", "sm_100a") : addOnePtx); },
     "PTX for sm_100a, and the GPU is sm_90"},
    {"PTX of a version that the driver does not know",
     [](World &w, bool planted) { AddOne(w, planted ? with(addOnePtx, "8.0", "9.1") : addOnePtx); },
     "PTX of version 9.1, and the driver knows 9.0"},
    {"a kernel that its library does not have",
     [](World &w, bool planted) { AddOne(w, addOnePtx, planted ? "add_two" : "add_one"); },
     "the library has no kernel add_two"},
};

/// What is wrong under some of the seeds, or "".
std::string foundIn(const Misuse &misuse, bool planted) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    World world(seed);
    misuse.run(world, planted);
    if (!world.wrong.empty())
      return world.wrong;
  }
  return "";
}

TEST(FakeRuntime, FindsEachMisuse) {
  for (const Misuse &misuse : misuses) {
    EXPECT_EQ(foundIn(misuse, false), "") << misuse.name << " is not there";
    const std::string found = foundIn(misuse, true);
    EXPECT_NE(found, "") << misuse.name;
    EXPECT_NE(found.find(misuse.found), std::string::npos) << misuse.name << ": " << found;
  }
}

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

TEST(FakeRuntime, ErrorsOfPtxHaveTheirNumbers) {
  World world(3);
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  std::array<char, 40> log{};
  cudaJitOption options[] = {cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
  void *values[] = {log.data(), std::bit_cast<void *>(log.size())};
  EXPECT_EQ(cudaLibraryLoadData(&library, "no PTX", options, values, 2, nullptr, nullptr, 0), cudaErrorInvalidPtx);
  EXPECT_STREQ(log.data(), "PTX line 1, 'no PTX': '.version' is exp");
  ASSERT_EQ(cudaLibraryLoadData(&library, addOnePtx, nullptr, nullptr, 0, nullptr, nullptr, 0), cudaSuccess);
  EXPECT_EQ(cudaLibraryGetKernel(&kernel, library, "add_two"), cudaErrorSymbolNotFound);
  ASSERT_EQ(cudaLibraryGetKernel(&kernel, library, "add_one"), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernel(kernel, 0, 32, nullptr, 0, world.streams[0]), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLaunchKernel(kernel, 1, 1025, nullptr, 0, world.streams[0]), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLaunchKernel(kernel, 1, 128, nullptr, 0, world.streams[0]), cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchKernel(kernel, 1, 32, nullptr, 0, world.streams[0]), cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchKernel(kernel, dim3(1, 2), 32, nullptr, 0, world.streams[0]), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLibraryUnload(library), cudaSuccess);
  EXPECT_EQ(cudaLibraryUnload(library), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaLibraryGetKernel(&kernel, library, "add_one"), cudaErrorInvalidResourceHandle);
}

TEST(FakeRuntime, PtxOutsideOfMemoryIsAnIllegalAddress) {
  World world(3);
  AddOne ptx(world);
  ptx.launch(world.device[0], nullptr);
  EXPECT_EQ(cudaStreamSynchronize(world.streams[0]), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress) << "it ends every later call";
  reviveDevices();
}

TEST(FakeRuntime, PtxThatDoesNotEndIsALaunchFailure) {
  World world(3);
  AddOne ptx(world, with(addOnePtx, "end: ret;", "end: bra end; ret;"));
  ptx.launch(world.device[0], world.device[1]);
  EXPECT_EQ(cudaStreamSynchronize(world.streams[0]), cudaErrorLaunchFailure);
  EXPECT_NE(std::string(cudaGetErrorString(cudaErrorLaunchFailure)).find("as many as it may run"), std::string::npos);
  reviveDevices();
}

TEST(FakeRuntime, PtxTouchesMemoryOfItsPeersOnly) {
  World world(3);
  uint8_t *other = nullptr;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&other, count), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  AddOne ptx(world);
  ptx.launch(other, world.device[0]);
  const cudaError_t error = cudaStreamSynchronize(world.streams[0]);
  EXPECT_EQ(error, cudaErrorIllegalAddress);
  EXPECT_TRUE(
      std::string(cudaGetErrorString(error)).ends_with("writes 1 bytes of memory of GPU 1 without peer access"));
  reviveDevices();
  (void)cudaFree(other);
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
