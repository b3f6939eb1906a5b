//===- plan_kernels.cpp - the kernels of plans for GPUs, made ---------------===//
//
// cuda-plan-kernels PLAN..., fake-plan-kernels PLAN...: give every kernel command of the plans to its factory, of
// libds-cuda or over the stand-ins for NVIDIA's libraries. A factory checks the call before it asks CUDA for anything,
// so that without a GPU it succeeds or fails for want of one. With a GPU, and with the stand-ins, libraries are asked
// for their algorithms and engines, too, and DS_CUDA_STRICT=1 makes a refusal of theirs an error. What a factory says
// otherwise is a disagreement between compiler and kernels, and is printed. Exit code 1 if there is any.
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "kernels/cuda/CudaKernels.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/run/Invocations.h"

#include <cstdio>
#include <cuda_runtime_api.h>
#include <map>
#include <string>
#include <string_view>

namespace {

using ds::plan::proto::Command;

bool hasGpu() {
  int gpus = 0;
  return cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0;
}

/// Why a kernel cannot be made, or "": nothing, or nothing but a GPU, is missing.
std::string refusal(const Command &command, bool withGpu) {
  const ds::kernels::Factory factory = ds::kernels::cudaKernels().find(command.kernel().kernel());
  if (factory == nullptr)
    return "there is no such kernel";
  try {
    factory(ds::plan::invocationOf(command.kernel()), {});
  } catch (const ds::Error &error) {
    const std::string_view what = error.what();
    for (const std::string_view library : {"cuBLASLt: ", "cuDNN: ", "CUDA: "})
      if (!withGpu && what.starts_with(library))
        return "";
    return std::string(what);
  }
  return "";
}

} // namespace

int main(int argc, char **argv) {
  const bool withGpu = hasGpu();
  std::map<std::string, int> made;
  int refused = 0;
  for (int i = 1; i < argc; ++i) {
    const ds::plan::proto::Plan plan = ds::plan::readPlan(argv[i]);
    for (const auto &role : plan.roles())
      for (const auto &routine : role.routines())
        for (const Command &command : routine.commands()) {
          if (!command.has_kernel())
            continue;
          ++made[command.kernel().kernel()];
          if (const std::string why = refusal(command, withGpu); !why.empty() && ++refused <= 20)
            std::fprintf(stderr, "%s, routine %s, kernel %s: %s\n", argv[i], routine.name().c_str(),
                         command.kernel().kernel().c_str(), why.c_str());
        }
  }
  for (const auto &[kernel, count] : made)
    std::printf("%s %d\n", kernel.c_str(), count);
  return refused > 0 ? 1 : 0;
}
