//===- Info.cpp - ds-run info ---------------------------------------------===//
#include "tools/ds-run/Info.h"

#include "kernels/KernelRegistry.h"
#include "runtime/comm/LoadMpi.h"
#include "runtime/executor/Storage.h"
#include "runtime/plan/PlanFile.h"

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

} // namespace

void printInfo() {
  std::printf("ds-run         %s\n", DS_VERSION);
  std::printf("plan format    %u\n", plan::formatVersion);
  std::printf("devices        cpu, null\n");
  std::printf("mpi            %s\n", runtime::hasMpi() ? "available" : "not available");
  std::printf("not built      cuda, nccl\n");
  std::printf("instructions   %s\n", instructionSets().c_str());
  std::printf("threads        %u\n", std::thread::hardware_concurrency());
  std::printf("memory         %.2f GiB available\n", double(runtime::availableMemory()) / double(1 << 30));
  std::printf("oneDNN         %s\n", dnnlVersion().c_str());
  std::printf("cpu kernels    %zu\n", kernels::cpuKernels().all().size());
}

} // namespace ds::run
