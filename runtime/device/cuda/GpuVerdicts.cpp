//===- GpuVerdicts.cpp - which GPU a rank gets, and why not ---------------===//
#include "runtime/device/cuda/GpuVerdicts.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

std::optional<uint32_t> numberIn(const std::optional<std::string> &text) {
  uint32_t number = 0;
  if (!text || text->empty())
    return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size())
    return std::nullopt;
  return number;
}

/// "13.0" for 13000.
std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// One of the kinds of code that kernels were compiled to.
struct CompiledFor {
  int major, minor;
  enum { Exactly, Generation, Newer } reach;

  bool covers(int gpuMajor, int gpuMinor) const {
    if (reach == Newer)
      return std::pair(gpuMajor, gpuMinor) >= std::pair(major, minor);
    return gpuMajor == major && (reach == Generation ? gpuMinor >= minor : gpuMinor == minor);
  }
};

std::vector<CompiledFor> compiledFor(const std::string &code) {
  std::vector<CompiledFor> all;
  std::istringstream names(code);
  for (std::string name; std::getline(names, name, ',');) { // compute_90, sm_90, sm_90a
    const int number = std::stoi(name.substr(name.find('_') + 1));
    all.push_back({number / 10, number % 10,
                   name.starts_with("compute")                             ? CompiledFor::Newer
                   : std::isdigit(static_cast<unsigned char>(name.back())) ? CompiledFor::Generation
                                                                           : CompiledFor::Exactly});
  }
  return all;
}

std::string nameOf(const GpuDescription &gpu) { return "GPU " + std::to_string(gpu.index) + " (" + gpu.name + ")"; }

} // namespace

LocalProcess localProcess(const std::function<std::optional<std::string>(const char *)> &variable) {
  constexpr const char *launchers[][2] = {{"LOCAL_RANK", "LOCAL_WORLD_SIZE"},
                                          {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                          {"SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"}};
  for (const auto &[indexName, countName] : launchers)
    if (const auto index = numberIn(variable(indexName)))
      return {*index, std::max(*index + 1, numberIn(variable(countName)).value_or(1))};
  return {};
}

GpuChoice chooseGpu(const LocalProcess &process, uint32_t index, uint32_t ranks, int gpus) {
  const uint64_t all = uint64_t(process.count) * ranks, mine = uint64_t(process.index) * ranks + index;
  const uint64_t gpu = mine % uint64_t(gpus);
  const uint64_t onIt = (all - gpu + uint64_t(gpus) - 1) / uint64_t(gpus); // of gpu, gpu + gpus, ... below `all`
  return {int(gpu), onIt > 1};
}

std::string refuseDriver(int driver, int runtime, int gpus, const std::string &error) {
  const std::string remedy = "; install NVIDIA driver 580 or newer, or compile the plan for a machine with device cpu";
  if (driver == 0)
    return "there is no NVIDIA driver on this machine" + remedy;
  if (driver / 1000 < runtime / 1000)
    return "the NVIDIA driver is for CUDA " + versionText(driver) + ", and this ds-run needs " + versionText(runtime) +
           remedy;
  if (!error.empty())
    return "the NVIDIA driver answers '" + error + "'; see whether nvidia-smi shows a GPU that is free and well";
  if (gpus == 0)
    return "the NVIDIA driver shows no GPU; see nvidia-smi and the variable CUDA_VISIBLE_DEVICES";
  return "";
}

std::string capabilitiesOf(const std::string &code) {
  std::string text;
  for (const CompiledFor &one : compiledFor(code)) {
    const std::string number = std::to_string(one.major) + "." + std::to_string(one.minor);
    text += (text.empty() ? "" : ", ") + number;
    if (one.reach == CompiledFor::Generation)
      text += " to " + std::to_string(one.major) + ".9";
    else if (one.reach == CompiledFor::Newer)
      text += " and newer";
  }
  return text;
}

std::string refuseCapability(const GpuDescription &gpu) {
  for (const CompiledFor &one : compiledFor(gpu.code))
    if (one.covers(gpu.major, gpu.minor))
      return "";
  return nameOf(gpu) + " has compute capability " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor) +
         ", and this ds-run has code for " + capabilitiesOf(gpu.code) +
         "; choose another GPU by CUDA_VISIBLE_DEVICES, or build with DS_CUDA_CODE for this one";
}

std::string versionText(uint64_t version) {
  if (version == 0)
    return "unknown";
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

std::string noteOfTuning(const TunedOn &tunedOn, const GpuDescription &gpu, uint64_t cublasLt) {
  if (tunedOn.gpu.empty() || (tunedOn.gpu == gpu.name && tunedOn.cublasLt == cublasLt))
    return "";
  return "the plan was tuned on " + tunedOn.gpu + " with cuBLASLt " + versionText(tunedOn.cublasLt) + ", and here is " +
         gpu.name + " with cuBLASLt " + versionText(cublasLt) +
         ": cuBLASLt chooses its algorithms by itself; ds-run --tune PLAN tunes the plan for this machine";
}

std::string refuseMemory(const GpuMemoryRequest &request, const GpuDescription &gpu) {
  if (request.bytes <= gpu.freeBytes)
    return "";
  const uint64_t held = gpu.totalBytes - std::min(gpu.totalBytes, gpu.freeBytes);
  const uint64_t others = held - std::min(held, request.siblingsBytes);
  std::string text = "rank " + std::to_string(request.rank) + " needs " + std::to_string(request.bytes) +
                     " bytes for its device arena, but " + nameOf(gpu) + " has " + std::to_string(gpu.freeBytes) +
                     " of " + std::to_string(gpu.totalBytes) + " bytes free: ";
  if (request.siblingsBytes > 0)
    text += "arenas of other ranks of this process hold " + std::to_string(request.siblingsBytes) + ", ";
  text += "CUDA and other processes hold " + std::to_string(others) + " (the plan reserves " +
          std::to_string(request.reserve) + " for what is outside of arenas); ";
  return text + (request.bytes + request.reserve <= gpu.totalBytes && others > request.reserve
                     ? "end the other processes that nvidia-smi shows"
                     : "compile for a smaller micro-batch, more ranks or a budget of device memory");
}

} // namespace ds::runtime
