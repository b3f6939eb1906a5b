//===- FakeRuntimeTesting.h - streams under several seeds, and misuses ----===//
#pragma once

#include "test/shim/FakeRuntime.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <span>
#include <string>

namespace shim {

constexpr size_t count = 64; ///< bytes of a World's memories
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

struct Misuse {
  const char *name;
  void (*run)(World &world, bool planted);
  const char *found; ///< a part of what is said
};

/// What is wrong under some of the seeds, or "".
inline std::string foundIn(const Misuse &misuse, bool planted) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    World world(seed);
    misuse.run(world, planted);
    if (!world.wrong.empty())
      return world.wrong;
  }
  return "";
}

/// Each is found where it is planted, and nothing is found where it is not.
inline void expectEachIsFound(std::span<const Misuse> misuses) {
  for (const Misuse &misuse : misuses) {
    EXPECT_EQ(foundIn(misuse, false), "") << misuse.name << " is not there";
    const std::string found = foundIn(misuse, true);
    EXPECT_NE(found, "") << misuse.name;
    EXPECT_NE(found.find(misuse.found), std::string::npos) << misuse.name << ": " << found;
  }
}

} // namespace shim
