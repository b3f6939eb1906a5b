// fp8_matmul where cuBLASLt has no algorithm: a thread an element of c.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/fp8/plain_fp8_matmul.h"

namespace ds::kernels::cuda {

namespace {

struct Factor {
  const uint8_t *codes;
  const float *scale;
  Float8 format;
  Float8Scales scales;
};

template <typename T>
__global__ void __launch_bounds__(blockThreads)
    plainFp8MatmulKernel(Factor a, Factor b, const T *bias, T *c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < m * n; i += int64_t(gridDim.x) * blockDim.x) {
    const uint8_t *row = a.codes + i / n * k, *col = b.codes + i % n * k;
    float sum = 0;
    for (int64_t l = 0; l < k; l += a.scales.step()) {
      const int64_t end = l + a.scales.step() < k ? l + a.scales.step() : k;
      float ofBlock = 0;
      for (int64_t place = l; place < end; ++place)
        ofBlock += float8Value(a.format, row[place]) * float8Value(b.format, col[place]);
      sum += ofBlock * (a.scale[a.scales.at(i / n, l)] * b.scale[b.scales.at(i % n, l)]);
    }
    c[i] = narrow<T>(sum + (bias ? wide(bias[i % n]) : 0.0F));
  }
}

} // namespace

void enqueuePlainFp8Matmul(const Fp8MatmulCall &call, std::span<void *const> operands, cudaStream_t stream) {
  using Operands = Fp8MatmulCall;
  const Factor a{at<const uint8_t>(operands, Operands::a), at<const float>(operands, Operands::aScale), call.aFormat,
                 call.aScales};
  const Factor b{at<const uint8_t>(operands, Operands::b), at<const float>(operands, Operands::bScale), call.bFormat,
                 call.bScales};
  if (call.m * call.n == 0)
    return;
  withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) < sizeof(double)) // which the call refuses
      launch<plainFp8MatmulKernel<T>>(blocksFor(call.m * call.n), blockThreads, stream, a, b,
                                      call.hasBias ? at<const T>(operands, Operands::bias) : nullptr,
                                      at<T>(operands, call.c), call.m, call.n, call.k);
  });
}

} // namespace ds::kernels::cuda
