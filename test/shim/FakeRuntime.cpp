//===- FakeRuntime.cpp - what runs next, and errors -----------------------===//
#include "test/shim/FakeRuntime.h"

#include "test/shim/Machine.h"
#include "test/shim/Streams.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace shim {

namespace {

thread_local cudaError_t lastError = cudaSuccess;
thread_local std::string lastSentence; ///< of the last misuse

/// What the work must not touch, in a sentence, or "".
std::string illegalAddress(const Work &work, int device) {
  for (const void *address : work.touched) {
    const Allocation *allocation = allocationAt(address);
    if (allocation == nullptr)
      continue; // the host's own memory
    if (allocation->freed)
      return kernelName(work.what) + " touches memory that was freed";
    if (!work.onAnyDevice && !canTouch(device, *allocation))
      return kernelName(work.what) + " on GPU " + std::to_string(device) + " touches memory of GPU " +
             std::to_string(allocation->device) + " without peer access";
  }
  return "";
}

/// Runs it, unless it says that it may not as yet.
bool tryRun(const Node &node) {
  if (!node.work || runtime().broken != cudaSuccess)
    return true;
  if (const std::string illegal = illegalAddress(*node.work, node.device); !illegal.empty()) {
    breakDevices(cudaErrorIllegalAddress, illegal);
    return true;
  }
  if (node.work->mayRun && !node.work->mayRun())
    return false;
  node.work->run();
  runtime().milliseconds += node.work->milliseconds;
  ++runtime().done;
  if (const char *failure = shim::failure())
    breakDevices(cudaErrorLaunchFailure, failure);
  return true;
}

/// A kernel that is loaded at its first launch may wait for all that runs on the GPU (CUDA's programming guide, "Lazy
/// Loading"), so for kernels of NCCL, which wait for another rank, which may wait for this launch.
bool loadsBesideNccl(const Work &work, int device) {
  const bool isKernel = !work.onAnyDevice;
  if (!isKernel || !runtime().loaded.insert(work.what).second || runtime().moduleLoading == "EAGER")
    return false;
  return std::ranges::any_of(runtime().turns, [&](const auto &turn) {
    return turn.second && !turn.second->done && turn.second->device == device;
  });
}

/// The last of the nodes that is of the same turn, added to what the next one is behind.
void addTurn(std::set<size_t> &after, const std::vector<Captured> &nodes, const void *turn) {
  for (size_t i = nodes.size(); turn != nullptr && i-- > 0;)
    if (nodes[i].work->turn == turn) {
      after.insert(i);
      return;
    }
}

cudaError_t capture(CUstream_st &stream, std::shared_ptr<const Work> work) {
  Capture &capture = *stream.capture;
  if (capture.invalid)
    return toldInvalid(capture);
  const bool isNccls = work->turn != nullptr; // whose communicator would be lost
  if (capture.nodes.size() >= 9 && !isNccls && hasFault("capture"))
    return invalidate(capture, cudaErrorStreamCaptureUnsupported, kernelName(work->what) + " cannot be captured");
  addTurn(stream.ends, capture.nodes, work->turn);
  capture.nodes.push_back({std::move(work), stream.device, std::move(stream.ends)});
  stream.ends = {capture.nodes.size() - 1};
  return cudaSuccess;
}

} // namespace

void breakDevices(cudaError_t error, const std::string &sentence) {
  if (runtime().broken != cudaSuccess)
    return;
  runtime().broken = error;
  runtime().sentence = sentence;
}

bool canTouch(int device, const Allocation &allocation) {
  return allocation.device < 0 || allocation.device == device || runtime().peers.contains({device, allocation.device});
}

const std::string &lastSentenceOfThread() {
  return runtime().broken != cudaSuccess ? runtime().sentence : lastSentence;
}

uint64_t numberOf(const char *variable, uint64_t otherwise) {
  const char *text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

int &currentDevice() {
  thread_local int device = 0;
  return device;
}

bool isLive(cudaStream_t stream) { return runtime().streams.contains(stream); }

Runtime::Runtime() : seed(numberOf("DS_FAKE_CUDA_SEED", 2)), random(seed) {
  const char *loading = std::getenv("CUDA_MODULE_LOADING");
  moduleLoading = loading != nullptr ? loading : "lazily";
  if (numberOf("DS_FAKE_CUDA_REPORT", 0) != 0)
    std::atexit([] {
      std::fprintf(stderr, "the fake CUDA ran %zu commands and %zu graphs\n", size_t(runtime().done),
                   size_t(runtime().graphs));
    });
}

bool hasFault(const char *name) {
  const char *named = std::getenv("DS_FAKE_CUDA_FAULT");
  return named != nullptr && std::string_view(named) == name;
}

Runtime &runtime() {
  static auto *const all = new Runtime; // outlives whatever ends with the process
  return *all;
}

cudaError_t told(cudaError_t error) { return error == cudaSuccess ? error : told(error, ""); }

cudaError_t told(cudaError_t error, const std::string &sentence) {
  lastSentence = sentence;
  return lastError = error;
}

void setSchedule(uint64_t seed) {
  const std::lock_guard lock(runtime().mutex);
  runtime().seed = seed;
  runtime().random.seed(seed);
}

void reviveDevices() {
  const std::lock_guard lock(runtime().mutex);
  while (runOne())
    continue;
  runtime().broken = lastError = cudaSuccess;
  forgetFailure();
}

bool runOne() {
  auto &ready = runtime().ready;
  const uint64_t seed = runtime().seed;
  const size_t drawn = seed > 1 && !ready.empty() ? size_t(runtime().random() % ready.size()) : 0;
  for (size_t i = 0; i < ready.size(); ++i) { // others where that waits for another process
    const size_t place = seed == 0 ? ready.size() - 1 - i : (drawn + i) % ready.size();
    const NodePointer node = ready[place];
    if (!tryRun(*node))
      continue;
    ready.erase(ready.begin() + ptrdiff_t(place));
    node->done = true;
    node->milliseconds = runtime().milliseconds;
    for (const NodePointer &next : std::exchange(node->next, {}))
      if (--next->unmet == 0)
        ready.push_back(next);
    return true;
  }
  return false;
}

NodePointer add(std::shared_ptr<const Work> work, int gpu, const std::vector<NodePointer> &after) {
  const auto node = std::make_shared<Node>(Node{std::move(work), gpu});
  for (const NodePointer &before : after)
    if (before && !before->done) {
      before->next.push_back(node);
      ++node->unmet;
    }
  if (node->unmet == 0)
    runtime().ready.push_back(node);
  return node;
}

NodePointer addInTurn(const std::shared_ptr<const Work> &work, int gpu, std::vector<NodePointer> after) {
  if (work->turn == nullptr)
    return add(work, gpu, after);
  NodePointer &last = runtime().turns[work->turn];
  after.push_back(last);
  return last = add(work, gpu, after);
}

void runUntil(const NodePointer &node, std::unique_lock<std::mutex> &lock) {
  while (node && !node->done && !runtime().ready.empty()) {
    if (runOne())
      continue;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    lock.lock();
  }
}

void goOnAlone() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::thread([] {
      for (uint64_t seen = 0;; std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
        const std::lock_guard lock(runtime().mutex);
        for (int left = 64; left > 0 && runtime().calls == seen && runOne(); --left)
          continue;
        seen = runtime().calls;
      }
    }).detach();
  });
}

void runSome() {
  ++runtime().calls;
  if (runtime().seed > 2 && runtime().seed % 2 == 1)
    for (uint64_t left = runtime().random() % 3; left > 0 && runOne(); --left)
      continue;
}

cudaError_t submit(cudaStream_t stream, Work work) {
  if (stream == nullptr) {
    work.run();
    return cudaSuccess;
  }
  const std::lock_guard lock(runtime().mutex);
  if (runtime().broken != cudaSuccess)
    return told(runtime().broken);
  return isLive(stream) ? giveTo(*stream, std::move(work)) : told(cudaErrorInvalidResourceHandle);
}

cudaError_t giveTo(CUstream_st &stream, Work work) {
  if (runtime().broken != cudaSuccess)
    return told(runtime().broken);
  if (!work.onAnyDevice && stream.device != currentDevice())
    return told(cudaErrorInvalidResourceHandle, kernelName(work.what) + " is launched on a stream of GPU " +
                                                    std::to_string(stream.device) + " while GPU " +
                                                    std::to_string(currentDevice()) + " is current");
  if (loadsBesideNccl(work, stream.device)) {
    breakDevices(cudaErrorLaunchFailure,
                 kernelName(work.what) + " is loaded at its first launch, which may wait for a kernel of NCCL that " +
                     "waits for another rank; modules are loaded " + runtime().moduleLoading);
    return told(runtime().broken);
  }
  auto shared = std::make_shared<const Work>(std::move(work));
  if (stream.capture)
    return capture(stream, std::move(shared));
  stream.tail = addInTurn(shared, stream.device, {stream.tail});
  runSome();
  return cudaSuccess;
}

void addAddresses(std::vector<const void *> &found, const void *parameter, size_t bytes) {
  const std::lock_guard lock(runtime().mutex);
  for (size_t at = 0; at + sizeof(void *) <= bytes; at += sizeof(void *)) {
    const void *word;
    std::memcpy(&word, static_cast<const std::byte *>(parameter) + at, sizeof word);
    if (allocationAt(word) != nullptr)
      found.push_back(word);
  }
}

} // namespace shim

using shim::runtime;
using shim::told;

cudaError_t cudaGetLastError() {
  const std::lock_guard lock(runtime().mutex);
  if (runtime().broken != cudaSuccess)
    return runtime().broken;
  if (shim::failure() != nullptr) { // of the null stream
    shim::lastSentence = shim::failure();
    shim::forgetFailure();
    return cudaErrorLaunchFailure;
  }
  return std::exchange(shim::lastError, cudaSuccess);
}

const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define DS_NAME(name)                                                                                                  \
  case name:                                                                                                           \
    return #name;
    DS_NAME(cudaSuccess)
    DS_NAME(cudaErrorInvalidValue)
    DS_NAME(cudaErrorMemoryAllocation)
    DS_NAME(cudaErrorInvalidConfiguration)
    DS_NAME(cudaErrorInvalidDevice)
    DS_NAME(cudaErrorNoKernelImageForDevice)
    DS_NAME(cudaErrorInvalidPtx)
    DS_NAME(cudaErrorUnsupportedPtxVersion)
    DS_NAME(cudaErrorInvalidResourceHandle)
    DS_NAME(cudaErrorIllegalState)
    DS_NAME(cudaErrorSymbolNotFound)
    DS_NAME(cudaErrorNotReady)
    DS_NAME(cudaErrorIllegalAddress)
    DS_NAME(cudaErrorPeerAccessAlreadyEnabled)
    DS_NAME(cudaErrorLaunchFailure)
    DS_NAME(cudaErrorStreamCaptureUnsupported)
    DS_NAME(cudaErrorStreamCaptureInvalidated)
    DS_NAME(cudaErrorStreamCaptureMerge)
    DS_NAME(cudaErrorStreamCaptureUnmatched)
    DS_NAME(cudaErrorStreamCaptureUnjoined)
    DS_NAME(cudaErrorStreamCaptureIsolation)
    DS_NAME(cudaErrorCapturedEvent)
    DS_NAME(cudaErrorStreamCaptureWrongThread)
    DS_NAME(cudaErrorTimeout)
#undef DS_NAME
  }
  return "an error that has no name";
}

const char *cudaGetErrorString(cudaError_t error) {
  const std::lock_guard lock(runtime().mutex);
  if (error == cudaSuccess || error == cudaErrorNotReady || error == cudaErrorMemoryAllocation)
    return cudaGetErrorName(error);
  const std::string &sentence = error == runtime().broken ? runtime().sentence : shim::lastSentence;
  return sentence.empty() ? cudaGetErrorName(error) : sentence.c_str();
}
