// adagrad: one pass in one launch, torch.optim.Adagrad's single-tensor formula.
// Compiled with --fmad=false: operation by operation, as on a CPU; lr, step and clip are read from device memory.
#include "kernels/cuda/Factories.h"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Refuse.cuh"
#include "kernels/cuda/StepRefusal.h"
#include "kernels/optimizer/adagrad_call.h"

namespace ds::kernels::cuda {

namespace {

struct AdagradNumbers {
  double epsilon, weightDecay, lrDecay;
};

template <typename T>
__global__ void __launch_bounds__(blockThreads)
    adagradKernel(T *p, const T *g, T *sum, int64_t elements, const double *lr, const int64_t *step, const double *clip,
                  AdagradNumbers numbers, Refuser refuse) {
  if (*step < 0) {
    if (threadIdx.x == 0 && blockIdx.x == 0)
      refuse(*step);
    return;
  }
  const T factor = T(*clip), decay = T(numbers.weightDecay), epsilon = T(numbers.epsilon);
  const T minusRate = T(-(*lr / (1 + double(*step) * numbers.lrDecay)));
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride) {
    const T gradient = g[i] * factor + decay * p[i], squares = sum[i] + gradient * gradient;
    sum[i] = squares;
    p[i] = p[i] + minusRate * gradient / (std::sqrt(squares) + epsilon);
  }
}

} // namespace

std::unique_ptr<Kernel> makeAdagrad(const Invocation &invocation, const BuildOptions &) {
  const AdagradCall call{Call(invocation)};
  const auto make = [&](auto zero) {
    using T = decltype(zero);
    return launching(
        invocation,
        [call](const CallContext &context, std::span<void *const> operands) {
          if (call.elements > 0)
            adagradKernel<T><<<blocksFor(call.elements), blockThreads, 0, streamOf(context)>>>(
                at<T>(operands, 0), at<const T>(operands, 1), at<T>(operands, 2), call.elements,
                at<const double>(operands, 3), at<const int64_t>(operands, 4), at<const double>(operands, 5),
                AdagradNumbers{call.epsilon, call.weightDecay, call.lrDecay}, Refuser(context));
        },
        stepRefusal("adagrad"));
  };
  if (call.dtype == DType::F64)
    return make(double{});
  return make(float{});
}

} // namespace ds::kernels::cuda
