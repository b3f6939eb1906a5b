// What matmul does where cuBLASLt has no epilogue, or no algorithm at all: bias, GELU and its gradient element by
// element, and a product in squares of shared memory.
#include "kernels/GeluTanh.h"
#include "kernels/cuda/Grid.h"
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/matmul/matmul_epilogue_cuda.h"

namespace ds::kernels::cuda {

namespace {

template <typename T, typename B>
__global__ void __launch_bounds__(blockThreads)
    epilogueKernel(MatmulEpilogue epilogue, T *product, const B *bias, T *aux, T *c, int64_t elements, int64_t cols) {
  using S = Sum<T>;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride) {
    S r = wide(product[i]);
    if (bias)
      r += wide(bias[i % cols]);
    if (epilogue == MatmulEpilogue::GeluTanh) {
      aux[i] = narrow<T>(r);
      c[i] = narrow<T>(geluTanhOf(r));
    } else {
      c[i] = narrow<T>(epilogue == MatmulEpilogue::GeluTanhGrad ? r * geluTanhSlopeOf(wide(aux[i])) : r);
    }
  }
}

constexpr int edge = 16;

/// Element (row, col) of op(matrix), 0 outside.
template <typename T>
__device__ Sum<T> elementOf(const T *matrix, int64_t row, int64_t col, int64_t rows, int64_t cols, bool transposed) {
  if (row >= rows || col >= cols)
    return Sum<T>(0);
  return wide(transposed ? matrix[col * rows + row] : matrix[row * cols + col]);
}

/// Blocks of [16, 16] threads, one element of c each; gridDim.x goes over the squares of c, y over batches.
template <typename T, typename C>
__global__ void __launch_bounds__(edge *edge)
    productKernel(const T *a, const T *b, C *c, int64_t m, int64_t n, int64_t k, int64_t batches, int64_t aStride,
                  int64_t bStride, int64_t cStride, bool transA, bool transB) {
  using S = Sum<T>;
  __shared__ S left[edge][edge], right[edge][edge + 1];
  const int64_t across = (n + edge - 1) / edge, squares = across * ((m + edge - 1) / edge);
  for (int64_t batch = blockIdx.y; batch < batches; batch += gridDim.y)
    for (int64_t s = blockIdx.x; s < squares; s += gridDim.x) {
      const int64_t row = s / across * edge + threadIdx.y, col = s % across * edge + threadIdx.x;
      S sum = 0;
      for (int64_t l = 0; l < k; l += edge) {
        left[threadIdx.y][threadIdx.x] = elementOf(a + batch * aStride, row, l + threadIdx.x, m, k, transA);
        right[threadIdx.y][threadIdx.x] = elementOf(b + batch * bStride, l + threadIdx.y, col, k, n, transB);
        __syncthreads();
        for (int j = 0; j < edge; ++j)
          sum += left[threadIdx.y][j] * right[j][threadIdx.x];
        __syncthreads();
      }
      if (row < m && col < n)
        c[batch * cStride + row * n + col] = narrow<C>(sum);
    }
}

} // namespace

void enqueueMatmulEpilogue(const MatmulEpilogueArguments &arguments, cudaStream_t stream) {
  const int64_t elements = arguments.rows * arguments.cols;
  if (arguments.cols == 0)
    return;
  withFloat(arguments.dtype, [&](auto zero) {
    using T = decltype(zero);
    const bool touches = arguments.bias || arguments.epilogue != MatmulEpilogue::None;
    const auto finish = [&](auto added) {
      using B = decltype(added);
      launch<epilogueKernel<T, B>>(blocksFor(elements), blockThreads, stream, arguments.epilogue,
                                   static_cast<T *>(arguments.product), static_cast<const B *>(arguments.bias),
                                   static_cast<T *>(arguments.aux), static_cast<T *>(arguments.c), elements,
                                   arguments.cols);
    };
    if (touches && elements > 0) {
      if (arguments.biasType == arguments.dtype)
        finish(zero);
      else
        withHalf(arguments.biasType, finish);
    }
  });
}

void enqueuePlainProduct(const MatmulPlan &plan, const MatmulPlan::Start &start, DType from, DType to, const void *a,
                         const void *b, void *c, cudaStream_t stream) {
  const int64_t squares = ((plan.m + edge - 1) / edge) * ((plan.n + edge - 1) / edge);
  withFloat(from, [&](auto zero) {
    using T = decltype(zero);
    const auto run = [&](auto result) {
      using C = decltype(result);
      launch<productKernel<T, C>>(dim3(blocksFor(squares, 1), unsigned(plan.batches < 65535 ? plan.batches : 65535)),
                                  dim3(edge, edge), stream, static_cast<const T *>(a) + start.a,
                                  static_cast<const T *>(b) + start.b, static_cast<C *>(c) + start.c, plan.m, plan.n,
                                  plan.k, plan.batches, plan.second.stride, plan.first.stride, plan.result.stride,
                                  plan.transposeSecond, plan.transposeFirst);
    };
    if (from == to)
      run(zero);
    else
      run(Sum<T>{});
  });
}

} // namespace ds::kernels::cuda
