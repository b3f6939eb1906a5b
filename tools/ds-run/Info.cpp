//===- Info.cpp - ds-run info ---------------------------------------------===//
#include "tools/ds-run/Info.h"

#include "kernels/KernelRegistry.h"
#include "kernels/cpu/Isa.h"
#include "runtime/device/cuda/GpuVerdicts.h"
#include "runtime/executor/Storage.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plugins/CudaLibrary.h"
#include "runtime/plugins/LoadCuda.h"
#include "runtime/plugins/LoadMpi.h"

#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <string>
#include <thread>

namespace ds::run {
namespace {

/// What of the processor's instructions matters to kernels.
std::string instructionSets() {
  std::string sets;
#if defined(__x86_64__)
  const auto add = [&](bool has, const char *name) { sets += has ? std::string(sets.empty() ? "" : " ") + name : ""; };
  add(__builtin_cpu_supports("sse4.2"), "sse4.2");
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  add(__builtin_cpu_supports("avx512bf16"), "avx512bf16");
  add(__builtin_cpu_supports("amx-bf16"), "amx-bf16");
#endif
  return sets.empty() ? "generic" : sets;
}

/// The beginning of oneDNN's dnnl_version_t.
struct DnnlVersion {
  int major, minor, patch;
};

/// Of the oneDNN in this process, asked by name: whether kernels use it is theirs to say, and this tool does not link
/// it.
std::string dnnlVersion() {
  using Function = const DnnlVersion *(*)();
  const auto function = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, "dnnl_version"));
  if (function == nullptr)
    return "not used";
  const DnnlVersion *version = function();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

void printGpus(const runtime::CudaInfo &info) {
  std::printf("cuda           %s; driver for CUDA %d.%d, built with %d.%d; cuBLASLt %s, cuDNN %s, NCCL %s\n",
              info.unusable.empty() ? "available" : info.unusable.c_str(), info.driver / 1000, info.driver % 1000 / 10,
              info.runtime / 1000, info.runtime % 1000 / 10, runtime::versionText(info.cublasLt).c_str(),
              runtime::versionText(info.cudnn).c_str(), runtime::versionText(info.nccl).c_str());
  for (const runtime::GpuDescription &gpu : info.gpus) {
    const std::string code = runtime::capabilitiesOf(gpu.code);
    std::printf("gpu %-2d         %s, capability %d.%d, %.2f of %.2f GiB free%s\n", gpu.index, gpu.name.c_str(),
                gpu.major, gpu.minor, double(gpu.freeBytes) / double(1 << 30), double(gpu.totalBytes) / double(1 << 30),
                runtime::refuseCapability(gpu).empty() ? "" : ("; not usable, there is code for " + code).c_str());
  }
}

void printCuda() {
  std::string why;
  if (const runtime::CudaLibrary *cuda = runtime::findCuda(why))
    printGpus(cuda->info());
  else
    std::printf("cuda           not available: %s\n", why.c_str());
}

} // namespace

void printInfo() {
  std::printf("ds-run         %s\n", DS_VERSION);
  std::printf("plan format    %u\n", plan::formatVersion);
  std::printf("devices        cpu, cuda, null\n");
  std::printf("mpi            %s\n", runtime::hasMpi() ? "available" : "not available");
  printCuda();
  std::printf("instructions   %s; kernels use %s\n", instructionSets().c_str(), kernels::nameOf(kernels::isa()));
  std::printf("threads        %u\n", std::thread::hardware_concurrency());
  std::printf("memory         %.2f GiB available\n", double(runtime::availableMemory()) / double(1 << 30));
  std::printf("oneDNN         %s\n", dnnlVersion().c_str());
  std::printf("cpu kernels    %zu\n", kernels::cpuKernels().all().size());
}

} // namespace ds::run
