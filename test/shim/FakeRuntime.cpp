//===- FakeRuntime.cpp - what runs next, and errors -----------------------===//
#include "test/shim/FakeRuntime.h"

#include "test/shim/Machine.h"
#include "test/shim/Streams.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace shim {

namespace {

thread_local cudaError_t lastError = cudaSuccess;
thread_local std::string lastSentence; ///< of the last misuse

void run(const Node &node) {
  if (!node.work || runtime().broken != cudaSuccess)
    return;
  for (const void *address : node.work->touched) {
    const Allocation *allocation = allocationAt(address);
    if (allocation == nullptr)
      continue; // the host's own memory
    if (allocation->freed)
      return breakDevices(cudaErrorIllegalAddress, kernelName(node.work->what) + " touches memory that was freed");
    if (!node.work->onAnyDevice && !canTouch(node.device, *allocation))
      return breakDevices(cudaErrorIllegalAddress, kernelName(node.work->what) + " on GPU " +
                                                       std::to_string(node.device) + " touches memory of GPU " +
                                                       std::to_string(allocation->device) + " without peer access");
  }
  node.work->run();
  ++runtime().done;
  if (const char *failure = shim::failure())
    breakDevices(cudaErrorLaunchFailure, failure);
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

std::string moduleLoading() { return runtime().moduleLoading; }

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
  if (ready.empty())
    return false;
  const uint64_t seed = runtime().seed;
  const size_t place = seed == 0 ? ready.size() - 1 : seed == 1 ? 0 : size_t(runtime().random() % ready.size());
  const NodePointer node = ready[place];
  ready.erase(ready.begin() + ptrdiff_t(place));
  run(*node);
  node->done = true;
  for (const NodePointer &next : std::exchange(node->next, {}))
    if (--next->unmet == 0)
      ready.push_back(next);
  return true;
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

void runUntil(const NodePointer &node) {
  while (node && !node->done && runOne())
    continue;
}

void runSome() {
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
  if (!isLive(stream))
    return told(cudaErrorInvalidResourceHandle);
  if (!work.onAnyDevice && stream->device != currentDevice())
    return told(cudaErrorInvalidResourceHandle, kernelName(work.what) + " is launched on a stream of GPU " +
                                                    std::to_string(stream->device) + " while GPU " +
                                                    std::to_string(currentDevice()) + " is current");
  auto shared = std::make_shared<const Work>(std::move(work));
  if (stream->capture) {
    if (stream->capture->invalid)
      return toldInvalid(*stream->capture);
    if (stream->capture->nodes.size() == 9 && hasFault("capture"))
      return invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported,
                        kernelName(shared->what) + " cannot be captured");
    stream->capture->nodes.push_back({std::move(shared), stream->device, std::move(stream->ends)});
    stream->ends = {stream->capture->nodes.size() - 1};
    return cudaSuccess;
  }
  stream->tail = add(std::move(shared), stream->device, {stream->tail});
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
