//===- GpuVerdicts.h - which GPU a rank gets, and why not -----------------===//
//
// What can be decided without a GPU, and the sentences that say so.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ds::runtime {

/// One GPU, as its driver describes it.
struct GpuDescription {
  int index = 0;
  std::string name;
  int major = 0, minor = 0; ///< compute capability
  uint64_t totalBytes = 0, freeBytes = 0;
  std::string code; ///< what the library's kernels were compiled to: DS_CUDA_CODE of cmake/CUDA.cmake, with commas
};

/// Where a process stands among those of its machine, as a launcher tells each of them.
struct LocalProcess {
  uint32_t index = 0, count = 1;
};

/// What a plan's products were tuned on (`ds-run --tune`).
struct TunedOn {
  std::string gpu;       ///< empty: the plan was not tuned
  uint64_t cublasLt = 0; ///< cublasLtGetVersion()
};

/// A rank that is to have a GPU.
struct CudaRank {
  uint32_t rank = 0;
  uint32_t index = 0, ranks = 1; ///< which of how many in this process
  LocalProcess process;          ///< where that stands on this machine
  uint64_t reserve = 0;          ///< bytes that the plan's machine leaves outside of arenas
  TunedOn tunedOn;               ///< what the plan says
};

/// By the variables of torchrun, Open MPI's mpirun or srun; `variable` is getenv, as text or nothing.
LocalProcess localProcess(const std::function<std::optional<std::string>(const char *)> &variable);

struct GpuChoice {
  int gpu;
  bool shared; ///< with another rank of this machine
};

/// Ranks of a machine take its GPUs in turn. `index`: of the rank among the `ranks` of its process.
GpuChoice chooseGpu(const LocalProcess &process, uint32_t index, uint32_t ranks, int gpus);

/// What GPUs code such as "sm_80,sm_90a,compute_90" is for: "8.0 to 8.9, 9.0, 9.0 and newer". Machine code of sm_80
/// runs on all 8.x, of sm_90a on 9.0 alone; PTX of compute_90 is compiled by the driver for what is newer.
std::string capabilitiesOf(const std::string &code);

/// "2.28.9" of 22809, as NVIDIA's libraries count; "unknown" of 0.
std::string versionText(uint64_t version);

// Each gives a sentence of why not and what would work, or an empty string.

/// Versions as cudaDriverGetVersion gives them, 13000 for 13.0; `driver` is 0 where there is none. `error`: CUDA's own
/// words, where counting GPUs failed.
std::string refuseDriver(int driver, int runtime, int gpus, const std::string &error);
std::string refuseCapability(const GpuDescription &gpu);

/// Where the plan was tuned on another kind of GPU, or for another cuBLASLt than this one of version `cublasLt`: so its
/// algorithms are left aside.
std::string noteOfTuning(const TunedOn &tunedOn, const GpuDescription &gpu, uint64_t cublasLt);

/// What an arena of a rank asks of a GPU.
struct GpuMemoryRequest {
  uint32_t rank = 0;
  uint64_t bytes = 0;         ///< of the arena
  uint64_t reserve = 0;       ///< of the plan's machine: what lives outside of arenas
  uint64_t siblingsBytes = 0; ///< arenas of this process on the same GPU
};
std::string refuseMemory(const GpuMemoryRequest &request, const GpuDescription &gpu);

} // namespace ds::runtime
