//===- Launch.h - a kernel that enqueues on the stream of its call --------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "kernels/cuda/Grid.h"

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace ds::kernels::cuda {

/// The failure that a refused value stands for.
using Refusal = std::function<Status(int64_t value)>;

inline cudaStream_t streamOf(const CallContext &context) { return static_cast<cudaStream_t>(context.stream->handle); }

/// What the launches since the last question came to.
inline Status launchStatus(const char *kernel) noexcept {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess)
    return Status::success();
  return Status::failure("kernel '%s': %s", kernel, cudaGetErrorString(error));
}

/// Calls enqueue(context, operands), which launches on the context's stream and may return a Status.
template <typename Enqueue> class Launch final : public Kernel {
public:
  Launch(std::string name, Enqueue enqueue, Refusal refusal)
      : name_(std::move(name)), enqueue_(std::move(enqueue)), refusal_(std::move(refusal)) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    if constexpr (std::is_void_v<decltype(enqueue_(context, operands))>)
      enqueue_(context, operands);
    else if (Status status = enqueue_(context, operands); !status.ok()) {
      (void)cudaGetLastError(); // else it would be the next launch's
      return status;
    }
    return launchStatus(name_.c_str());
  }

  Status refusal(int64_t value) const noexcept override { return refusal_ ? refusal_(value) : Kernel::refusal(value); }

private:
  std::string name_;
  Enqueue enqueue_;
  Refusal refusal_;
};

template <typename Enqueue>
std::unique_ptr<Kernel> launching(const Invocation &invocation, Enqueue enqueue, Refusal refusal = {}) {
  return std::make_unique<Launch<Enqueue>>(invocation.kernel, std::move(enqueue), std::move(refusal));
}

/// Operand `index` as elements of T.
template <typename T> T *at(std::span<void *const> operands, size_t index) { return static_cast<T *>(operands[index]); }

} // namespace ds::kernels::cuda
