//===- FakeLibrary.cpp - libraries of PTX, and launches of their kernels --===//
//
// By CUDA's reference of its runtime, "Library Management" and "Execution Control". PTX runs by kernels/ptx, every
// access against what cudaMalloc and cudaHostAlloc gave. A launch copies its parameters and runs late, as other work
// does. Text is compiled late, too, as CUDA's default says: what is wrong with it is told by cudaFuncGetAttributes or
// the first launch. ptxas takes more than kernels/ptx: what that does not read is cudaErrorInvalidPtx here.
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "kernels/ptx/Ptx.h"
#include "test/shim/Streams.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

struct CUkern_st {
  const ds::ptx::Entry *entry; ///< null where the library's text is refused
};
struct CUlib_st {};

namespace shim {

/// Stays after cudaLibraryUnload, so that no handle is used twice and launches that come too late are found.
struct LoadedPtx {
  ds::ptx::Module module;
  CUlib_st handle;
  std::vector<std::unique_ptr<CUkern_st>> kernels{}; ///< that were asked for
  bool unloaded = false;
  cudaError_t refusal = cudaSuccess; ///< of the text
  std::string sentence{};
};

namespace {

/// What kernels of one GPU see.
class DeviceMemory : public ds::ptx::Memory {
public:
  explicit DeviceMemory(int device) : device_(device) {}

  void load(uint64_t address, std::span<std::byte> to) override {
    check("reads", address, to.size());
    std::memcpy(to.data(), at(address), to.size());
  }
  void store(uint64_t address, std::span<const std::byte> from) override {
    check("writes", address, from.size());
    std::memcpy(at(address), from.data(), from.size());
  }
  bool hasRefused() const { return hasRefused_; }

private:
  static void *at(uint64_t address) { return std::bit_cast<void *>(address); }

  void check(const char *verb, uint64_t address, size_t bytes) {
    if (address >= begin_ && address - begin_ < bytes_ && bytes <= bytes_ - (address - begin_))
      return;
    hasRefused_ = true;
    const Allocation *found = allocationAt(at(address));
    const std::string what = std::string(verb) + " " + std::to_string(bytes) + " bytes ";
    if (found == nullptr)
      throw ds::Error(what + "outside of every allocation");
    const uintptr_t begin = std::prev(runtime().allocations.upper_bound(address))->first;
    if (bytes > found->bytes - (address - begin))
      throw ds::Error(what + "across the end of an allocation");
    if (found->freed)
      throw ds::Error(what + "of memory that was freed");
    if (!canTouch(device_, *found))
      throw ds::Error(what + "of memory of GPU " + std::to_string(found->device) + " without peer access");
    hasRefused_ = false;
    begin_ = begin;
    bytes_ = found->bytes;
  }

  const int device_;
  uint64_t begin_ = 0, bytes_ = 0; ///< the allocation of the access before
  bool hasRefused_ = false;
};

/// A launch, with its parameters.
struct PtxLaunch {
  std::shared_ptr<LoadedPtx> library;
  const ds::ptx::Entry *entry;
  ds::ptx::Grid grid;
  std::vector<uint64_t> parameters;
  int device;

  void run() const {
    if (library->unloaded)
      return breakDevices(cudaErrorLaunchFailure, entry->name + " runs after its library was unloaded");
    DeviceMemory memory(device);
    ds::ptx::Grid order = grid;
    order.lastFirst = runtime().seed % 2 == 1; // blocks and threads have no order
    try {
      (void)ds::ptx::run(library->module, entry->name, order, parameters, memory);
    } catch (const ds::Error &error) {
      breakDevices(memory.hasRefused() ? cudaErrorIllegalAddress : cudaErrorLaunchFailure, error.what());
    }
  }
};

/// What a driver of CUDA 13.0 with a GPU of capability 9.0 says of a text.
void compile(const char *text, LoadedPtx &loaded) {
  const auto refuse = [&](cudaError_t error, const std::string &sentence) {
    loaded.refusal = error;
    loaded.sentence = sentence;
  };
  try {
    loaded.module = ds::ptx::parse(text);
  } catch (const ds::Error &error) {
    return refuse(cudaErrorInvalidPtx, error.what());
  }
  const ds::ptx::Module &module = loaded.module;
  const unsigned long number = std::strtoul(module.target.c_str() + std::strlen("sm_"), nullptr, 10);
  if (std::strtod(module.version.c_str(), nullptr) > 9.0)
    refuse(cudaErrorUnsupportedPtxVersion, "PTX of version " + module.version + ", and the driver knows 9.0");
  else if (number > 90 || (module.target.ends_with('a') && number != 90))
    refuse(cudaErrorNoKernelImageForDevice, "PTX for " + module.target + ", and the GPU is sm_90");
}

/// nullptr if it is none, or was unloaded.
std::shared_ptr<LoadedPtx> libraryOf(cudaLibrary_t handle) {
  const auto found = runtime().libraries.find(handle);
  return found == runtime().libraries.end() || found->second->unloaded ? nullptr : found->second;
}

/// The library and the entry of a kernel's handle, or nothing.
std::pair<std::shared_ptr<LoadedPtx>, const ds::ptx::Entry *> kernelOf(const void *function) {
  for (const auto &[handle, library] : runtime().libraries)
    for (const auto &kernel : library->kernels)
      if (kernel.get() == function && !library->unloaded)
        return {library, kernel->entry};
  return {};
}

cudaError_t checkGrid(const ds::ptx::Entry &entry, dim3 blocks, dim3 threads, void **arguments) {
  const uint64_t count = uint64_t(threads.x) * threads.y * threads.z;
  if (blocks.x == 0 || blocks.x > 0x7FFFFFFF || count == 0 || count > 1024)
    return told(cudaErrorInvalidConfiguration, entry.name + " is launched with " + std::to_string(blocks.x) +
                                                   " blocks of " + std::to_string(count) + " threads");
  if (blocks.y != 1 || blocks.z != 1 || threads.y != 1 || threads.z != 1)
    return told(cudaErrorInvalidConfiguration, entry.name + ": PTX runs on grids of one dimension here");
  if (threads.x > entry.mostThreads || (entry.exactThreads != 0 && threads.x != entry.exactThreads))
    return told(cudaErrorInvalidValue, entry.name + " is launched with " + std::to_string(threads.x) +
                                           " threads a block, and is compiled for " +
                                           std::to_string(entry.mostThreads));
  if (arguments == nullptr && !entry.parameterBytes.empty())
    return told(cudaErrorInvalidValue, entry.name + " is launched without its parameters");
  return cudaSuccess;
}

/// Copied, as a launch does: of each parameter as many bytes as it has.
std::vector<uint64_t> parametersOf(const ds::ptx::Entry &entry, void **arguments) {
  std::vector<uint64_t> result(entry.parameterBytes.size());
  for (size_t place = 0; place < result.size(); ++place)
    std::memcpy(&result[place], arguments[place], entry.parameterBytes[place]);
  return result;
}

} // namespace

} // namespace shim

using shim::runtime;
using shim::told;

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, cudaJitOption *, void **, unsigned,
                                cudaLibraryOption *, void **, unsigned) {
  const std::lock_guard lock(runtime().mutex);
  if (const cudaError_t error = shim::unsafe("cudaLibraryLoadData"); error != cudaSuccess)
    return error;
  const auto loaded = std::make_shared<shim::LoadedPtx>();
  shim::compile(static_cast<const char *>(code), *loaded);
  *library = &loaded->handle;
  runtime().libraries[*library] = loaded;
  return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
  const std::lock_guard lock(runtime().mutex);
  const auto loaded = shim::libraryOf(library);
  if (!loaded)
    return told(cudaErrorInvalidResourceHandle, "cudaLibraryGetKernel of what is no library, or was unloaded");
  const ds::ptx::Entry *entry = loaded->refusal == cudaSuccess ? loaded->module.find(name) : nullptr;
  if (entry == nullptr && loaded->refusal == cudaSuccess)
    return told(cudaErrorSymbolNotFound, std::string("the library has no kernel ") + name);
  loaded->kernels.push_back(std::make_unique<CUkern_st>(CUkern_st{entry}));
  *kernel = loaded->kernels.back().get();
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
  const std::lock_guard lock(runtime().mutex);
  if (const cudaError_t error = shim::unsafe("cudaFuncGetAttributes"); error != cudaSuccess)
    return error;
  const auto [library, entry] = shim::kernelOf(function);
  if (!library)
    return told(cudaErrorInvalidResourceHandle, "cudaFuncGetAttributes of what is no kernel");
  if (entry == nullptr)
    return told(library->refusal, library->sentence);
  attributes->maxThreadsPerBlock = int(entry->mostThreads);
  return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  const std::lock_guard lock(runtime().mutex);
  if (const cudaError_t error = shim::unsafe("cudaLibraryUnload"); error != cudaSuccess)
    return error;
  const auto loaded = shim::libraryOf(library);
  if (!loaded)
    return told(cudaErrorInvalidResourceHandle, "cudaLibraryUnload of what is no library, or was unloaded");
  loaded->unloaded = true;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 blocks, dim3 threads, void **arguments, size_t,
                             cudaStream_t stream) {
  shim::PtxLaunch launch;
  {
    const std::lock_guard lock(runtime().mutex);
    if (stream == nullptr)
      return told(cudaErrorInvalidResourceHandle, "PTX is launched on the null stream, which our runtime never uses");
    const auto [library, entry] = shim::kernelOf(function);
    if (library && entry == nullptr)
      return told(library->refusal, library->sentence);
    if (!library)
      return told(cudaErrorInvalidResourceHandle, "a launch of what is no kernel, or of a library that was unloaded");
    if (const cudaError_t error = shim::checkGrid(*entry, blocks, threads, arguments); error != cudaSuccess)
      return error;
    launch = {library, entry, {blocks.x, threads.x}, shim::parametersOf(*entry, arguments), shim::currentDevice()};
  }
  const char *name = launch.entry->name.c_str(); // the launch keeps its library
  return shim::submit(stream, {name, [launch = std::move(launch)] { launch.run(); }, {}});
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *configuration, const void *function, void **arguments) {
  if (configuration->numAttrs != 0)
    return told(cudaErrorInvalidValue, "attributes of launches are not emulated");
  return cudaLaunchKernel(function, configuration->gridDim, configuration->blockDim, arguments,
                          configuration->dynamicSmemBytes, configuration->stream);
}
