#include "kernels/cuda/LoadedCode.h"

#include "kernels/cuda/Fallback.h"

#include <array>
#include <map>
#include <mutex>
#include <string>

namespace ds::kernels::cuda {

namespace {

/// Most operands of a call: elementwise_cuda_plan.h's mostTensors.
constexpr size_t mostOperands = 128;

/// What the driver made of a code, or null and why it made nothing.
std::shared_ptr<const LoadedCode> load(const DeviceCode &code, std::string &why) {
  const std::string text(code.text), name(code.name); // the driver wants a zero behind them
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  cudaError_t error = cudaLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (error == cudaSuccess) {
    error = cudaLibraryGetKernel(&kernel, library, name.c_str());
    cudaFuncAttributes attributes; // whose question compiles: by default nothing does before the first launch
    if (error == cudaSuccess)
      error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(kernel));
    if (error != cudaSuccess)
      (void)cudaLibraryUnload(library);
  }
  if (error == cudaSuccess)
    return std::make_shared<const LoadedCode>(library, kernel, dim3(code.blocks), dim3(code.threads));
  (void)cudaGetLastError(); // else it would be the next launch's
  why = cudaGetErrorString(error);
  return nullptr;
}

} // namespace

void LoadedCode::launch(cudaStream_t stream, std::span<void *const> operands) const noexcept {
  std::array<void *, mostOperands> parameters; // where each parameter's value lies
  for (size_t i = 0; i < operands.size(); ++i)
    parameters[i] = const_cast<void **>(&operands[i]);
  (void)cudaLaunchKernel(reinterpret_cast<const void *>(kernel_), blocks_, threads_, parameters.data(), 0, stream);
}

std::shared_ptr<const LoadedCode> loadedCode(const Invocation &invocation) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const LoadedCode>, std::less<>> all; // by text
  if (!invocation.code || invocation.operands.size() > mostOperands)
    return nullptr;
  std::string why;
  {
    const std::lock_guard lock(mutex);
    std::erase_if(all, [](const auto &one) { return one.second.expired(); });
    if (const auto known = all.find(invocation.code->text); known != all.end())
      if (auto code = known->second.lock())
        return code;
    if (auto code = load(*invocation.code, why)) {
      all.insert_or_assign(std::string(invocation.code->text), code);
      return code;
    }
  }
  fallBack(invocation, "the driver", "does not take its code (" + why + ")");
  return nullptr;
}

} // namespace ds::kernels::cuda
