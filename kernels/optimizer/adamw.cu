// adamw: one pass over p, g, m, v in one launch, torch.optim.AdamW's single-tensor formula.
// Compiled with --fmad=false: operation by operation, as on a CPU. lr, step and clip are read from device memory; what
// is one number for the whole update is computed in float64 once a block, of which there are few: it takes
// microseconds.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Refuse.cuh"
#include "kernels/cuda/StepRefusal.h"
#include "kernels/optimizer/adamw_call.h"

namespace ds::kernels::cuda {

namespace {

/// Of float32 a multiprocessor runs four at once.
constexpr int64_t mostUpdateBlocks = 8 * multiprocessors;

/// The attributes of a call.
struct AdamWNumbers {
  double beta1, beta2, epsilon, weightDecay;
  bool decoupled;
};

/// The numbers of one update, in the tensors' type.
template <typename T> struct Coefficients {
  T clip, decay, coupledDecay, lerpWeight, lerpRest, beta2, oneMinusBeta2, minusStepSize, correction2, epsilon;
  bool lerpFromStart; ///< torch.lerp goes from the nearer end
};

template <typename T>
__device__ Coefficients<T> coefficientsOf(const AdamWNumbers &n, double lr, int64_t step, double clip, double beta1) {
  const double next = double(step) + 1;
  Coefficients<T> k;
  k.clip = T(clip);
  k.decay = n.decoupled ? T(1 - lr * n.weightDecay) : T(1);
  k.coupledDecay = n.decoupled ? T(0) : T(n.weightDecay);
  k.lerpWeight = T(1 - beta1);
  k.lerpRest = T(1) - k.lerpWeight;
  k.beta2 = T(n.beta2);
  k.oneMinusBeta2 = T(1 - n.beta2);
  k.minusStepSize = T(-(lr / (1 - pow(beta1, next))));
  k.correction2 = T(sqrt(1 - pow(n.beta2, next)));
  k.epsilon = T(n.epsilon);
  k.lerpFromStart = k.lerpWeight < T(0.5);
  return k;
}

template <typename T> __device__ void update(T &p, T g, T &m, T &v, const Coefficients<T> &k) {
  const T parameter = p * k.decay, gradient = g * k.clip + k.coupledDecay * parameter;
  const T difference = gradient - m;
  const T first = k.lerpFromStart ? m + k.lerpWeight * difference : gradient - k.lerpRest * difference;
  const T second = v * k.beta2 + k.oneMinusBeta2 * gradient * gradient;
  m = first;
  v = second;
  p = parameter + k.minusStepSize * first / (std::sqrt(second) / k.correction2 + k.epsilon);
}

template <typename T, typename P, typename G, typename M>
__device__ void updateElement(P &p, G g, M &m, M &v, const Coefficients<T> &k) {
  T parameter = T(wide(p)), first = T(wide(m)), second = T(wide(v));
  update(parameter, T(wide(g)), first, second, k);
  p = narrow<P>(parameter);
  m = narrow<M>(first);
  v = narrow<M>(second);
}

/// Of a parameter of 16 bits, which is computed with in float32, moments may be float32.
template <typename P, typename G, typename M>
__global__ void __launch_bounds__(blockThreads)
    adamwKernel(P *p, const G *g, M *m, M *v, int64_t elements, const double *lr, const int64_t *step,
                const double *clip, const double *momentum, AdamWNumbers numbers, bool packed, Refuser refuse) {
  using T = decltype(wide(P{}));
  __shared__ Coefficients<T> k;
  if (*step < 0) { // the same for all threads
    if (threadIdx.x == 0 && blockIdx.x == 0)
      refuse(*step);
    return;
  }
  if (*clip == 0) // no update
    return;
  if (threadIdx.x == 0)
    k = coefficientsOf<T>(numbers, *lr, *step, *clip, momentum ? *momentum : numbers.beta1);
  __syncthreads();
  constexpr int width = packOf<T>;
  using Parameters = Pack<P, width>;
  using Moments = Pack<M, width>;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x, start = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t packs = packed ? elements / width : 0;
  for (int64_t i = start; i < packs; i += stride) {
    auto ps = reinterpret_cast<Parameters *>(p)[i];
    auto ms = reinterpret_cast<Moments *>(m)[i], vs = reinterpret_cast<Moments *>(v)[i];
    const auto gs = reinterpret_cast<const Pack<G, width> *>(g)[i];
    for (int j = 0; j < width; ++j)
      updateElement(ps.values[j], gs.values[j], ms.values[j], vs.values[j], k);
    reinterpret_cast<Parameters *>(p)[i] = ps;
    reinterpret_cast<Moments *>(m)[i] = ms;
    reinterpret_cast<Moments *>(v)[i] = vs;
  }
  for (int64_t i = packs * width + start; i < elements; i += stride)
    updateElement(p[i], g[i], m[i], v[i], k);
}

} // namespace

std::unique_ptr<Kernel> makeAdamW(const Invocation &invocation, const BuildOptions &) {
  const AdamWCall call{Call(invocation)};
  const AdamWNumbers numbers{call.beta1, call.beta2, call.epsilon, call.weightDecay, call.decoupled};
  const auto make = [&](auto parameter, auto gradient, auto moment) {
    using P = decltype(parameter);
    using G = decltype(gradient);
    using M = decltype(moment);
    constexpr int width = packOf<decltype(wide(parameter))>;
    return launching(
        invocation,
        [numbers, elements = call.elements, cycled = call.cycled](const CallContext &context,
                                                                  std::span<void *const> operands) {
          uintptr_t addresses = 0;
          for (size_t i = 0; i < 4; ++i)
            addresses |= reinterpret_cast<uintptr_t>(operands[i]);
          if (elements > 0)
            launch<adamwKernel<P, G, M>>(
                blocksFor(elements, blockThreads * width, mostUpdateBlocks), blockThreads, streamOf(context),
                at<P>(operands, 0), at<const G>(operands, 1), at<M>(operands, 2), at<M>(operands, 3), elements,
                at<const double>(operands, 4), at<const int64_t>(operands, 5), at<const double>(operands, 6),
                cycled ? at<const double>(operands, 7) : nullptr, numbers, addresses % 16 == 0, Refuser(context));
        },
        stepRefusal("adamw"));
  };
  if (isNarrowFloat(call.dtype))
    return withHalf(call.dtype, [&](auto low) {
      return call.moments == call.dtype ? make(low, low, low) : make(low, low, float{});
    });
  return withGradient(call.dtype, call.gradient, [&](auto zero, auto gradient) { return make(zero, gradient, zero); });
}

} // namespace ds::kernels::cuda
