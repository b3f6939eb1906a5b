//===- FakeRuntime.cpp - memory, streams and events -----------------------===//
#include "test/shim/FakeRuntime.h"

#include "test/shim/Machine.h"
#include "test/shim/Streams.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/mman.h>
#include <utility>

namespace shim {

namespace {

thread_local int device = 0;
thread_local cudaError_t lastError = cudaSuccess;
thread_local std::string lastSentence; ///< of the last misuse

uint64_t numberOf(const char *variable, uint64_t otherwise) {
  const char *text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

int gpus() {
  static const int count = int(numberOf("DS_FAKE_CUDA_GPUS", 1));
  return count;
}

/// The allocation that the address lies in, or nullptr.
const Allocation *allocationAt(const void *address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto &all = runtime().allocations;
  auto found = all.upper_bound(at);
  if (found == all.begin())
    return nullptr;
  --found;
  return at - found->first < found->second.bytes ? &found->second : nullptr;
}

void breakDevices(cudaError_t error, const std::string &sentence) {
  if (runtime().broken != cudaSuccess)
    return;
  runtime().broken = error;
  runtime().sentence = sentence;
}

bool canTouch(int from, const Allocation &allocation) {
  return allocation.device < 0 || allocation.device == from || runtime().peers.contains({from, allocation.device});
}

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

/// One of those that may run next. False: there is none.
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

/// Of memory that may be used; every byte is what no kernel can use.
void *mapped(size_t bytes) {
  void *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  std::memset(memory, 0xff, bytes);
  return memory;
}

constexpr size_t deviceBytes = size_t(16) << 30;

size_t freeBytes(int gpu) {
  size_t used = 0;
  for (const auto &[address, allocation] : runtime().allocations)
    used += allocation.device == gpu && !allocation.freed ? allocation.bytes : 0;
  return deviceBytes - std::min(deviceBytes, used);
}

cudaError_t give(void **address, size_t bytes, int gpu, const char *call) {
  const std::lock_guard lock(runtime().mutex);
  if (const cudaError_t error = unsafe(call); error != cudaSuccess)
    return error;
  *address = gpu >= 0 && bytes > freeBytes(gpu) ? nullptr : mapped(std::max<size_t>(1, bytes));
  if (*address == nullptr)
    return told(cudaErrorMemoryAllocation);
  runtime().allocations[reinterpret_cast<uintptr_t>(*address)] = {std::max<size_t>(1, bytes), gpu};
  return cudaSuccess;
}

cudaError_t takeBack(void *address, bool onDevice, const char *call) {
  if (address == nullptr)
    return cudaSuccess;
  const std::lock_guard lock(runtime().mutex);
  if (const cudaError_t error = unsafe(call); error != cudaSuccess)
    return error;
  const auto found = runtime().allocations.find(reinterpret_cast<uintptr_t>(address));
  if (found == runtime().allocations.end() || found->second.freed || (found->second.device >= 0) != onDevice)
    return told(cudaErrorInvalidValue, std::string(call) + " of what is no allocation, or was freed before");
  found->second.freed = true;
  ::madvise(address, found->second.bytes, MADV_DONTNEED);
  return cudaSuccess;
}

bool isLive(cudaStream_t stream) { return runtime().streams.contains(stream); }

} // namespace

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

NodePointer add(std::shared_ptr<const Work> work, int gpu, const std::vector<NodePointer> &after) {
  const auto node = std::make_shared<Node>(Node{std::move(work), gpu});
  for (const NodePointer &before : after)
    if (before && !before->done) {
      before->next.push_back(node);
      ++node->unmet;
    }
  if (node->unmet == 0)
    runtime().ready.push_back(node);
  runtime().idleQueries = 0;
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
  if (!work.onAnyDevice && stream->device != device)
    return told(cudaErrorInvalidResourceHandle, kernelName(work.what) + " is launched on a stream of GPU " +
                                                    std::to_string(stream->device) + " while GPU " +
                                                    std::to_string(device) + " is current");
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
  stream->before = stream->tail;
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

/// Outside of the shim's own memory, what the runtime has given out.
bool isAllocated(const void *begin, size_t bytes) {
  const std::lock_guard lock(runtime().mutex);
  const Allocation *first = allocationAt(begin);
  return first != nullptr && !first->freed &&
         first == allocationAt(static_cast<const std::byte *>(begin) + std::max<size_t>(1, bytes) - 1);
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
    DS_NAME(cudaErrorInvalidDevice)
    DS_NAME(cudaErrorInvalidResourceHandle)
    DS_NAME(cudaErrorIllegalState)
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

cudaError_t cudaDriverGetVersion(int *version) {
  (void)runtime(); // the first call of a process
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }

cudaError_t cudaGetDeviceCount(int *count) {
  *count = shim::gpus();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int gpu) {
  if (gpu < 0 || gpu >= shim::gpus())
    return told(cudaErrorInvalidDevice);
  *properties = {"a processor in place of a GPU", 9, 0};
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *gpu) {
  *gpu = shim::device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int gpu) {
  if (gpu < 0 || gpu >= shim::gpus())
    return told(cudaErrorInvalidDevice);
  shim::device = gpu;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int gpu, int peer) {
  *can = gpu != peer;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  const std::lock_guard lock(runtime().mutex);
  if (peer < 0 || peer >= shim::gpus() || peer == shim::device)
    return told(cudaErrorInvalidDevice);
  return runtime().peers.insert({shim::device, peer}).second ? cudaSuccess : told(cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  const std::lock_guard lock(runtime().mutex);
  *total = shim::deviceBytes;
  *free = shim::freeBytes(shim::device);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **address, size_t bytes) { return shim::give(address, bytes, shim::device, "cudaMalloc"); }
cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned) {
  return shim::give(address, bytes, -1, "cudaHostAlloc");
}
cudaError_t cudaFree(void *address) { return shim::takeBack(address, true, "cudaFree"); }
cudaError_t cudaFreeHost(void *address) { return shim::takeBack(address, false, "cudaFreeHost"); }

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned) {
  *device = host;
  return cudaSuccess;
}

namespace {

/// The first and the last byte.
std::vector<const void *> rangeOf(const void *begin, size_t bytes) {
  return {begin, static_cast<const std::byte *>(begin) + bytes - 1};
}

/// Pageable memory of the host, where the stream records nothing: the runtime takes bytes before the call returns.
bool isStaged(const void *address, cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  return stream != nullptr && shim::isLive(stream) && !stream->capture && shim::allocationAt(address) == nullptr;
}

} // namespace

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (bytes == 0)
    return cudaSuccess;
  shim::Work work{"a copy", {}, rangeOf(to, bytes), true};
  if (isStaged(from, stream)) {
    const auto *begin = static_cast<const std::byte *>(from);
    work.run = [to, staged = std::vector<std::byte>(begin, begin + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
    };
  } else {
    const auto source = rangeOf(from, bytes);
    work.touched.insert(work.touched.end(), source.begin(), source.end());
    work.run = [to, from, bytes] { std::memmove(to, from, bytes); };
  }
  const cudaError_t error = shim::submit(stream, std::move(work));
  return error == cudaSuccess && isStaged(to, stream) ? cudaStreamSynchronize(stream) : error;
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0)
    return cudaSuccess;
  return shim::submit(stream, {"a fill", [address, value, bytes] { std::memset(address, value, bytes); },
                               rangeOf(address, bytes), true});
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  const std::lock_guard lock(runtime().mutex);
  *stream = new CUstream_st{shim::device, nullptr, nullptr, nullptr, {}};
  runtime().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  if (runtime().streams.erase(stream) == 0)
    return told(cudaErrorInvalidResourceHandle);
  if (stream->capture)
    (void)shim::invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported,
                           "cudaStreamDestroy of a stream that is capturing");
  delete stream; // what it was given still runs
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  if (!shim::isLive(stream))
    return told(cudaErrorInvalidResourceHandle);
  if (stream->capture)
    return shim::invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported,
                            "cudaStreamSynchronize of a stream that is capturing");
  shim::runUntil(stream->tail);
  return told(runtime().broken);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  if (!shim::isLive(stream))
    return told(cudaErrorInvalidResourceHandle);
  if (stream->capture)
    return shim::invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported,
                            "cudaStreamQuery of a stream that is capturing");
  if (runtime().broken != cudaSuccess || !stream->tail || stream->tail->done)
    return told(runtime().broken);
  constexpr uint64_t patience = 20; // so that what other threads are about to enqueue is there to choose from
  if (runtime().seed % 2 == 0 && ++runtime().idleQueries < patience)
    return told(cudaErrorNotReady);
  for (uint64_t left = 1 + runtime().random() % 8; left > 0 && shim::runOne(); --left)
    continue;
  return told(cudaErrorNotReady);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  const std::lock_guard lock(runtime().mutex);
  *event = new CUevent_st{shim::device, nullptr, nullptr, {}};
  runtime().events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(runtime().mutex);
  if (runtime().events.erase(event) == 0)
    return told(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  if (!runtime().events.contains(event) || !shim::isLive(stream))
    return told(cudaErrorInvalidResourceHandle);
  if (event->device != stream->device)
    return told(cudaErrorInvalidResourceHandle, "an event of GPU " + std::to_string(event->device) +
                                                    " is recorded on a stream of GPU " +
                                                    std::to_string(stream->device));
  if (stream->capture && stream->capture->invalid)
    return shim::toldInvalid(*stream->capture);
  event->node = stream->capture ? nullptr : shim::hasFault("early") ? stream->before : stream->tail;
  event->capture = stream->capture;
  event->ends = stream->ends;
  shim::runSome();
  return told(runtime().broken);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(runtime().mutex);
  if (!runtime().events.contains(event) || !shim::isLive(stream))
    return told(cudaErrorInvalidResourceHandle);
  const auto &from = event->capture;
  if (from && from->ended)
    return told(cudaErrorCapturedEvent, "a wait for an event that was last recorded in a capture, which has ended");
  if (from && stream->capture && from != stream->capture)
    return shim::invalidate(*from, cudaErrorStreamCaptureMerge, "a wait that would join two captures");
  if (from && from->invalid)
    return shim::toldInvalid(*from);
  if (from) { // a fork, or a join
    stream->capture = from;
    stream->ends.insert(event->ends.begin(), event->ends.end());
    return cudaSuccess;
  }
  if (stream->capture && event->node)
    return shim::invalidate(*stream->capture, cudaErrorStreamCaptureIsolation,
                            "a stream that is capturing waits for an event that was recorded outside");
  if (!stream->capture && event->node && !event->node->done && !shim::hasFault("waits"))
    stream->tail = shim::add(nullptr, stream->device, {stream->tail, event->node});
  shim::runSome();
  return told(runtime().broken);
}
