//===- update.cuh - an optimizer's update, element by element --------------===//
//
// A file that includes it is compiled with --fmad=false: operation by operation, as on a CPU. lr, step and clip are
// read from device memory, so that a captured launch updates anew each step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Refuse.cuh"
#include "kernels/cuda/StepRefusal.h"

namespace ds::kernels::cuda {

/// What `Update` is made of, for a thread: the call's numbers and those of the step.
struct UpdateScalars {
  const double *lr;
  const int64_t *step;
  const double *clip;
  const double *momentum; ///< null: the call's own
};

/// Update<T>(numbers, lr, step, clip) and then update(p, g, state) for each element, p and state by reference; `state`
/// is null where the optimizer keeps nothing for a parameter. A momentum that is cycled takes the place of the numbers'
/// beta1.
template <template <typename> class Update, typename T, typename G, typename Numbers>
__global__ void __launch_bounds__(blockThreads)
    updateKernel(T *p, const G *g, T *state, int64_t elements, UpdateScalars scalars, Numbers numbers, Refuser refuse) {
  if (*scalars.step < 0) { // the same for all threads
    if (threadIdx.x == 0 && blockIdx.x == 0)
      refuse(*scalars.step);
    return;
  }
  if (*scalars.clip == 0) // no update
    return;
  if constexpr (requires { numbers.beta1; })
    if (scalars.momentum)
      numbers.beta1 = *scalars.momentum;
  const Update<T> update(numbers, *scalars.lr, *scalars.step, T(*scalars.clip));
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride)
    update(p[i], T(wide(g[i])), state ? &state[i] : nullptr);
}

/// The kernel of an optimizer with one tensor of state, operand 2, or none; lr, step and clip are the operands from
/// `scalars` on, and behind them a momentum if it is `cycled`.
template <template <typename> class Update, typename Numbers>
std::unique_ptr<Kernel> makeUpdate(const Invocation &invocation, const Call &call, const Numbers &numbers,
                                   const char *name, bool cycled = false) {
  return withGradient(call.dtype(), call.dtype("g"), [&](auto zero, auto gradient) {
    using T = decltype(zero);
    using G = decltype(gradient);
    return launching(
        invocation,
        [numbers, elements = call.elements("p"), scalars = call["lr"], cycled](const CallContext &context,
                                                                               std::span<void *const> operands) {
          const UpdateScalars stepScalars{at<const double>(operands, scalars), at<const int64_t>(operands, scalars + 1),
                                          at<const double>(operands, scalars + 2),
                                          cycled ? at<const double>(operands, scalars + 3) : nullptr};
          if (elements > 0)
            launch<updateKernel<Update, T, G, Numbers>>(
                blocksFor(elements), blockThreads, streamOf(context), at<T>(operands, 0), at<const G>(operands, 1),
                scalars > 2 ? at<T>(operands, 2) : nullptr, elements, stepScalars, numbers, Refuser(context));
        },
        stepRefusal(name));
  });
}

} // namespace ds::kernels::cuda
