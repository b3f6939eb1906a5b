// lamb: DeepSpeed's FusedLamb in one launch of one block, which keeps the norms of the parameter and its update to
// itself. Compiled with --fmad=false: operation by operation, as on a CPU; lr, step, clip and momentum are read from
// device memory.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Reduce.cuh"
#include "kernels/cuda/Refuse.cuh"
#include "kernels/cuda/StepRefusal.h"
#include "kernels/optimizer/lamb_call.h"

namespace ds::kernels::cuda {

namespace {

constexpr int lambThreads = 1024;

/// The attributes of a call.
struct LambNumbers {
  double beta1, beta2, epsilon, weightDecay, maxCoeff, minCoeff;
  bool biasCorrection;
};

template <typename T, typename G>
__global__ void __launch_bounds__(lambThreads)
    lambKernel(T *p, const G *g, T *m, T *v, int64_t elements, const double *lr, const int64_t *step,
               const double *clip, const double *momentum, LambNumbers n, Refuser refuse) {
  if (*step < 0) { // the same for all threads
    if (threadIdx.x == 0)
      refuse(*step);
    return;
  }
  if (*clip == 0) // no update
    return;
  const double firstDecay = momentum ? *momentum : n.beta1;
  const T factor = T(*clip), beta1 = T(firstDecay), oneMinusBeta1 = T(1 - firstDecay), beta2 = T(n.beta2),
          oneMinusBeta2 = T(1 - n.beta2), epsilon = T(n.epsilon), decay = T(n.weightDecay);
  double parameterSquares = 0, updateSquares = 0;
  for (int64_t i = threadIdx.x; i < elements; i += lambThreads) {
    const T gradient = T(wide(g[i])) * factor;
    const T first = m[i] * beta1 + oneMinusBeta1 * gradient;
    const T second = v[i] * beta2 + oneMinusBeta2 * gradient * gradient;
    m[i] = first;
    v[i] = second;
    const double update = double(first / (std::sqrt(second) + epsilon) + decay * p[i]);
    parameterSquares += double(p[i]) * double(p[i]);
    updateSquares += update * update;
  }
  parameterSquares = blockSum(parameterSquares);
  updateSquares = blockSum(updateSquares);
  const T distance = T(lambStepSize(n.biasCorrection, *lr, *step, firstDecay, n.beta2) *
                       trustRatio(parameterSquares, updateSquares, n.minCoeff, n.maxCoeff));
  // Each thread reads the moments that it has written itself.
  for (int64_t i = threadIdx.x; i < elements; i += lambThreads)
    p[i] = p[i] - distance * (m[i] / (std::sqrt(v[i]) + epsilon) + decay * p[i]);
}

} // namespace

std::unique_ptr<Kernel> makeLamb(const Invocation &invocation, const BuildOptions &) {
  const LambCall call{Call(invocation)};
  const LambNumbers numbers{call.beta1,    call.beta2,    call.epsilon,       call.weightDecay,
                            call.maxCoeff, call.minCoeff, call.biasCorrection};
  return withGradient(call.dtype, call.gradient, [&](auto zero, auto gradient) {
    using T = decltype(zero);
    using G = decltype(gradient);
    return launching(
        invocation,
        [numbers, elements = call.elements, cycled = call.cycled](const CallContext &context,
                                                                  std::span<void *const> operands) {
          if (elements > 0)
            launch<lambKernel<T, G>>(1, lambThreads, streamOf(context), at<T>(operands, 0), at<const G>(operands, 1),
                                     at<T>(operands, 2), at<T>(operands, 3), elements, at<const double>(operands, 4),
                                     at<const int64_t>(operands, 5), at<const double>(operands, 6),
                                     cycled ? at<const double>(operands, 7) : nullptr, numbers, Refuser(context));
        },
        stepRefusal("lamb"));
  });
}

} // namespace ds::kernels::cuda
