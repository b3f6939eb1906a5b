// sgd: one pass in one launch, torch.optim.SGD's single-tensor formula.
// Compiled with --fmad=false: operation by operation, as on a CPU; lr, step and clip are read from device memory.
#include "kernels/cuda/Factories.h"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Refuse.cuh"
#include "kernels/cuda/StepRefusal.h"
#include "kernels/optimizer/sgd_call.h"

namespace ds::kernels::cuda {

namespace {

struct SgdNumbers {
  double momentum, weightDecay;
  bool nesterov;
};

/// `buffer` is null without momentum.
template <typename T>
__global__ void __launch_bounds__(blockThreads)
    sgdKernel(T *p, const T *g, T *buffer, int64_t elements, const double *lr, const int64_t *step, const double *clip,
              SgdNumbers numbers, Refuser refuse) {
  if (*step < 0) {
    if (threadIdx.x == 0 && blockIdx.x == 0)
      refuse(*step);
    return;
  }
  const T factor = T(*clip), decay = T(numbers.weightDecay), minusLr = T(-*lr), momentum = T(numbers.momentum);
  const bool first = *step == 0;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride) {
    const T gradient = g[i] * factor + decay * p[i];
    T change = gradient;
    if (buffer) {
      const T kept = first ? gradient : buffer[i] * momentum + gradient;
      buffer[i] = kept;
      change = numbers.nesterov ? gradient + momentum * kept : kept;
    }
    p[i] = p[i] + minusLr * change;
  }
}

} // namespace

std::unique_ptr<Kernel> makeSgd(const Invocation &invocation, const BuildOptions &) {
  const SgdCall call{Call(invocation)};
  const auto make = [&](auto zero) {
    using T = decltype(zero);
    return launching(
        invocation,
        [call](const CallContext &context, std::span<void *const> operands) {
          if (call.elements > 0)
            sgdKernel<T><<<blocksFor(call.elements), blockThreads, 0, streamOf(context)>>>(
                at<T>(operands, 0), at<const T>(operands, 1), call.tensors == 3 ? at<T>(operands, 2) : nullptr,
                call.elements, at<const double>(operands, call.tensors), at<const int64_t>(operands, call.tensors + 1),
                at<const double>(operands, call.tensors + 2),
                SgdNumbers{call.momentum, call.weightDecay, call.nesterov}, Refuser(context));
        },
        stepRefusal("sgd"));
  };
  if (call.dtype == DType::F64)
    return make(double{});
  return make(float{});
}

} // namespace ds::kernels::cuda
