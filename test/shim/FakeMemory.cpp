//===- FakeMemory.cpp - GPUs and their memory -----------------------------===//
#include "test/shim/Streams.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>

namespace shim {

namespace {

int gpus() {
  static const int count = int(numberOf("DS_FAKE_CUDA_GPUS", 1));
  return count;
}

/// Of memory that may be used; every byte is what no kernel can use.
void *mapped(size_t bytes) {
  void *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  std::memset(memory, 0xff, bytes);
  return memory;
}

const size_t deviceBytes = numberOf("DS_FAKE_CUDA_BYTES", uint64_t(16) << 30);

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

} // namespace

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
  const int capability = int(shim::numberOf("DS_FAKE_CUDA_CAPABILITY", 90));
  *properties = {"a processor in place of a GPU", capability / 10, capability % 10, 1 << 20};
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *gpu) {
  *gpu = shim::currentDevice();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int gpu) {
  if (gpu < 0 || gpu >= shim::gpus())
    return told(cudaErrorInvalidDevice);
  shim::currentDevice() = gpu;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int gpu, int peer) {
  *can = gpu != peer;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  const std::lock_guard lock(runtime().mutex);
  if (peer < 0 || peer >= shim::gpus() || peer == shim::currentDevice())
    return told(cudaErrorInvalidDevice);
  return runtime().peers.insert({shim::currentDevice(), peer}).second ? cudaSuccess
                                                                      : told(cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  const std::lock_guard lock(runtime().mutex);
  *total = shim::deviceBytes;
  *free = shim::freeBytes(shim::currentDevice());
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **address, size_t bytes) {
  return shim::give(address, bytes, shim::currentDevice(), "cudaMalloc");
}
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

std::atomic<uint64_t> stagedToHost = 0;

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

uint64_t shim::bytesStagedToHost() { return stagedToHost; }

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
  if (error != cudaSuccess || !isStaged(to, stream))
    return error;
  stagedToHost += bytes;
  return cudaStreamSynchronize(stream);
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0)
    return cudaSuccess;
  return shim::submit(stream, {"a fill", [address, value, bytes] { std::memset(address, value, bytes); },
                               rangeOf(address, bytes), true});
}
