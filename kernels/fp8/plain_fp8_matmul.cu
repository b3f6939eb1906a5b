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
};

template <typename T>
__global__ void __launch_bounds__(blockThreads)
    plainFp8MatmulKernel(Factor a, Factor b, const T *bias, T *c, int64_t m, int64_t n, int64_t k) {
  const float scale = *a.scale * *b.scale;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < m * n; i += int64_t(gridDim.x) * blockDim.x) {
    const uint8_t *row = a.codes + i / n * k, *col = b.codes + i % n * k;
    float sum = 0;
    for (int64_t l = 0; l < k; ++l)
      sum += float8Value(a.format, row[l]) * float8Value(b.format, col[l]);
    c[i] = narrow<T>(sum * scale + (bias ? wide(bias[i % n]) : 0.0F));
  }
}

} // namespace

void enqueuePlainFp8Matmul(const Fp8MatmulCall &call, std::span<void *const> operands, cudaStream_t stream) {
  using Operands = Fp8MatmulCall;
  const Factor a{at<const uint8_t>(operands, Operands::a), at<const float>(operands, Operands::aScale), call.aFormat};
  const Factor b{at<const uint8_t>(operands, Operands::b), at<const float>(operands, Operands::bScale), call.bFormat};
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
