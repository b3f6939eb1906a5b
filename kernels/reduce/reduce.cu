// reduce_sum, reduce_mean, reduce_max. Where the innermost dimension is reduced, a block adds the elements behind one
// result; else 32 results side by side share a block, so that neighbouring threads read neighbouring elements. Few
// results of many elements are cut into pieces (reduce_cuda_pieces.h), whose results are combined in order.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Reduce.cuh"
#include "kernels/reduce/reduce_cuda_plan.h"

#include <limits>

namespace ds::kernels::cuda {

namespace {

/// Sums of integers wrap.
template <typename T> using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, Sum<T>>;

struct Added {
  template <typename A> __host__ __device__ static A neutral() { return A(0); }
  template <typename A> __host__ __device__ A operator()(A a, A b) const {
    if constexpr (std::is_integral_v<A>)
      return A(uint64_t(a) + uint64_t(b));
    else
      return a + b;
  }
};
struct Largest : Larger {
  template <typename A> __host__ __device__ static A neutral() {
    if constexpr (std::is_integral_v<A>)
      return A(INT64_MIN);
    else
      return A(-HUGE_VAL);
  }
};

/// A block adds one piece behind one result at a time. `to` is [pieces, outputs].
template <typename T, typename To, typename Op>
__global__ void __launch_bounds__(mostRowThreads, 2)
    rowKernel(const ReduceSpace space, const T *x, To *to, Accumulator<T> divisor, Op op) {
  using A = Accumulator<T>;
  for (int64_t task = blockIdx.x; task < space.outputs * space.pieces; task += gridDim.x) {
    const int64_t o = task / space.pieces, piece = task % space.pieces;
    const int64_t begin = piece * space.perPiece;
    const int64_t end = begin + space.perPiece < space.length ? begin + space.perPiece : space.length;
    const T *row = x + space.keptOffset(o);
    A value = Op::template neutral<A>();
    for (int64_t k = begin + threadIdx.x; k < end; k += blockDim.x)
      value = op(value, A(wide(row[space.reducedOffset(k)])));
    value = blockReduce(value, op, Op::template neutral<A>());
    if (threadIdx.x == 0)
      to[piece * space.outputs + o] = narrow<To>(value / divisor);
  }
}

/// A block of [32, 8] threads: threadIdx.x is a result, threadIdx.y takes every eighth element of the piece.
template <typename T, typename To, typename Op>
__global__ void __launch_bounds__(blockThreads)
    columnKernel(const ReduceSpace space, const T *x, To *to, Accumulator<T> divisor, Op op) {
  using A = Accumulator<T>;
  __shared__ A partial[8][warpThreads];
  const int64_t tiles = (space.outputs + warpThreads - 1) / warpThreads;
  for (int64_t task = blockIdx.x; task < tiles * space.pieces; task += gridDim.x) {
    const int64_t o = task / space.pieces * warpThreads + threadIdx.x, piece = task % space.pieces;
    const int64_t begin = piece * space.perPiece;
    const int64_t end = begin + space.perPiece < space.length ? begin + space.perPiece : space.length;
    A value = Op::template neutral<A>();
    if (o < space.outputs) {
      const T *column = x + space.keptOffset(o);
      for (int64_t k = begin + threadIdx.y; k < end; k += blockDim.y)
        value = op(value, A(wide(column[space.reducedOffset(k)])));
    }
    partial[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.y == 0 && o < space.outputs) {
      for (unsigned j = 1; j < blockDim.y; ++j)
        value = op(value, partial[j][threadIdx.x]);
      to[piece * space.outputs + o] = narrow<To>(value / divisor);
    }
    __syncthreads();
  }
}

/// Combines the pieces in order.
template <typename A, typename To, typename Op>
__global__ void __launch_bounds__(blockThreads)
    combineKernel(const A *pieces, int64_t count, int64_t outputs, To *y, A divisor, Op op) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t o = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; o < outputs; o += stride) {
    A value = Op::template neutral<A>();
    for (int64_t piece = 0; piece < count; ++piece)
      value = op(value, pieces[piece * outputs + o]);
    y[o] = narrow<To>(value / divisor);
  }
}

template <typename T, typename To, typename Op>
void enqueuePieces(const ReduceSpace &space, const T *x, To *to, Accumulator<T> divisor, Op op, cudaStream_t stream) {
  if (space.innerReduced || space.outputs == 1)
    launch<rowKernel<T, To, Op>>(blocksFor(space.outputs * space.pieces, 1), rowThreads(space.perPiece), stream, space,
                                 x, to, divisor, op);
  else
    launch<columnKernel<T, To, Op>>(blocksFor((space.outputs + warpThreads - 1) / warpThreads * space.pieces, 1),
                                    dim3(warpThreads, 8), stream, space, x, to, divisor, op);
}

template <typename T, typename Y, typename Op>
std::unique_ptr<Kernel> makeWith(const Invocation &invocation, const ReduceSpace &space, bool mean, Op op) {
  using A = Accumulator<T>;
  const A divisor = mean ? A(space.length) : A(1);
  return launching(invocation, [=](const CallContext &context, std::span<void *const> operands) {
    const cudaStream_t stream = streamOf(context);
    if (space.outputs == 0)
      return;
    if (space.pieces == 1)
      return enqueuePieces(space, at<const T>(operands, 0), at<Y>(operands, 1), divisor, op, stream);
    auto *pieces = at<A>(operands, 2);
    enqueuePieces(space, at<const T>(operands, 0), pieces, A(1), op, stream);
    launch<combineKernel<A, Y, Op>>(blocksFor(space.outputs), blockThreads, stream, pieces, space.pieces, space.outputs,
                                    at<Y>(operands, 1), divisor, op);
  });
}

} // namespace

std::unique_ptr<Kernel> makeReduce(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  const ReduceCall call(checked, reductionNamed(invocation.kernel));
  const ReduceSpace space(call, checked.workspace().bytes);
  const bool mean = call.reduction == Reduction::Mean;
  const bool wider = checked.dtype("y") != call.dtype; // float32 from bfloat16
  return withNumber(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    if (call.reduction == Reduction::Max)
      return makeWith<T, T>(invocation, space, false, Largest{});
    if (wider)
      return makeWith<T, Accumulator<T>>(invocation, space, mean, Added{});
    return makeWith<T, T>(invocation, space, mean, Added{});
  });
}

} // namespace ds::kernels::cuda
