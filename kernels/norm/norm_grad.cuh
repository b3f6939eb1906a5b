//===- norm_grad.cuh - the gradient of a norm, in one pass over its rows --===//
//
// With n = (x - mean) * rstd and h = dy * gamma:
//   dx = rstd * (h - mean(h) - n * mean(h * n)),  dgamma = sum over rows of dy * n,  dbeta = sum over rows of dy,
// and residual added to dx. A norm that is not centered has neither mean nor dbeta.
//
// A block takes a piece of the rows (norm_grad_pieces.h), one after the other, and reads each once. A thread has the
// same columns of each row and so the sums of these columns, in the order of rows; the pieces' sums lie in the
// workspace and are then added by a kernel of their own. So the order of a column is that of its rows, whatever the
// packs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/cuda/Reduce.cuh"
#include "kernels/norm/norm_row.cuh"
#include "kernels/norm/norm_rows.h"

namespace ds::kernels::cuda {

/// The operands of a call; of [rows, cols] are dy, x, residual, which may be null, and dx.
template <typename T> struct NormGrad {
  const T *dy, *x, *residual;
  const Sum<T> *gamma, *means, *rstds; ///< `means` is null where the norm is not centered
  T *dx;
  int64_t rows, cols, perPiece;
  Sum<T> *dgammas, *dbetas; ///< [pieces, cols]
};

/// The sums of both numbers over a block, for every thread. There is one barrier, since calls, whose number is given,
/// take turns with two places: who is at a barrier has read what the call before left.
template <typename S> __device__ Pack<S, 2> blockSums(Pack<S, 2> own, int64_t call) {
  __shared__ Pack<S, 2> partial[2][warpThreads];
  Pack<S, 2> *place = partial[call % 2];
  for (S &value : own.values)
    value = warpReduce(value, Plus{});
  if (threadIdx.x % warpThreads == 0)
    place[threadIdx.x / warpThreads] = own;
  __syncthreads();
  const unsigned lane = threadIdx.x % warpThreads;
  own = lane < blockDim.x / warpThreads ? place[lane] : Pack<S, 2>{};
  for (S &value : own.values)
    value = warpReduce(value, Plus{});
  return own;
}

/// `kept` is 1 where a thread has one pack of a row, and its sums in registers, and else 0: they are in the workspace.
template <typename T, int width, int kept, bool centered>
__global__ void __launch_bounds__(normRowThreads, 2) normGradKernel(const NormGrad<T> g) {
  using S = Sum<T>;
  using Values = Pack<T, width>;
  using Sums = Pack<S, width>;
  const int64_t cols = g.cols, begin = blockIdx.x * g.perPiece;
  const int64_t end = begin + g.perPiece < g.rows ? begin + g.perPiece : g.rows;
  S *const dgammas = g.dgammas + blockIdx.x * cols, *const dbetas = centered ? g.dbetas + blockIdx.x * cols : nullptr;
  const bool hasPack = kept && threadIdx.x * width < cols;
  Sums ownGammas{}, dgamma{}, dbeta{};
  if (hasPack)
    ownGammas = packAt<width>(g.gamma, threadIdx.x);
  const auto gammasOf = [&](int64_t pack) { return kept ? ownGammas : packAt<width>(g.gamma, pack); };
  for (int64_t row = begin; row < end; ++row) {
    const NormRow<T, width, kept> dyRow(g.dy + row * cols, cols), xRow(g.x + row * cols, cols);
    const S mean = centered ? g.means[row] : S(0), rstd = g.rstds[row];
    Pack<S, 2> sums{}; // of h and h * n
    dyRow.forEachWith(xRow, [&](int64_t pack, const Values &dys, const Values &xs) {
      const Sums gammas = gammasOf(pack);
      for (int j = 0; j < width; ++j) {
        const S h = wide(dys.values[j]) * gammas.values[j];
        sums.values[0] += h;
        sums.values[1] += h * (wide(xs.values[j]) - mean) * rstd;
      }
    });
    sums = blockSums(sums, row);
    const S meanH = centered ? sums.values[0] / S(cols) : S(0), meanHn = sums.values[1] / S(cols);
    dyRow.forEachWith(xRow, [&](int64_t pack, const Values &dys, const Values &xs) {
      const Sums gammas = gammasOf(pack);
      if (!kept && row > begin) {
        dgamma = packAt<width>(dgammas, pack);
        if (centered)
          dbeta = packAt<width>(dbetas, pack);
      } else if (!kept) {
        dgamma = dbeta = {};
      }
      Values dxs;
      for (int j = 0; j < width; ++j) {
        const S dy = wide(dys.values[j]), n = (wide(xs.values[j]) - mean) * rstd;
        dgamma.values[j] += dy * n;
        dbeta.values[j] += dy;
        dxs.values[j] = narrow<T>(rstd * (dy * gammas.values[j] - meanH - n * meanHn));
      }
      addResidual(dxs, g.residual ? g.residual + row * cols : nullptr, pack);
      storePack(g.dx + row * cols, pack, dxs);
      if (!kept) {
        storePack(dgammas, pack, dgamma);
        if (centered)
          storePack(dbetas, pack, dbeta);
      }
    });
  }
  if (hasPack) {
    storePack(dgammas, threadIdx.x, dgamma);
    if (centered)
      storePack(dbetas, threadIdx.x, dbeta);
  }
}

inline constexpr int piecesThreads = 32; ///< that share the pieces of a column

/// to[col] = the sum of the pieces; blocks of [32, 32] threads, those with y = 1 of `pieces2` and `to2`.
template <typename S>
__global__ void __launch_bounds__(warpThreads *piecesThreads)
    addPiecesKernel(const S *pieces, const S *pieces2, int64_t count, int64_t cols, S *to, S *to2) {
  __shared__ S sums[piecesThreads][warpThreads];
  const int64_t col = int64_t(blockIdx.x) * warpThreads + threadIdx.x;
  const S *from = blockIdx.y == 0 ? pieces : pieces2;
  S sum = 0;
  if (col < cols)
    for (int64_t piece = threadIdx.y; piece < count; piece += piecesThreads)
      sum += from[piece * cols + col];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || col >= cols)
    return;
  for (int i = 1; i < piecesThreads; ++i)
    sum += sums[i][threadIdx.x];
  (blockIdx.y == 0 ? to : to2)[col] = sum;
}

/// Sums of which a thread keeps those of one pack in registers, or none; run(width, kept, threads of a block).
template <typename T, typename Run> void withNormGradRow(bool packed, int64_t cols, Run run) {
  const int64_t work = packed ? cols / packOf<T> : cols;
  const auto one = std::integral_constant<int, 1>{};
  const auto none = std::integral_constant<int, 0>{};
  const auto pack = std::integral_constant<int, packOf<T>>{};
  const unsigned fewer = std::min<unsigned>(rowThreads(work, keptPacks), normRowThreads);
  if (packed && work <= normRowThreads)
    run(pack, one, unsigned((work + warpThreads - 1) / warpThreads * warpThreads));
  else if (packed)
    run(pack, none, fewer);
  else
    run(one, none, fewer);
}

/// layer_norm_grad where the norm is `centered`, and rms_norm_grad.
template <bool centered> std::unique_ptr<Kernel> makeNormGrad(const Invocation &invocation, const NormRows &call) {
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = Sum<T>;
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      const cudaStream_t stream = streamOf(context);
      const int64_t rows = call.rows, cols = call.cols, pieces = cudaNormGradPieces(rows, cols);
      auto *dgammas = static_cast<S *>(call.workspace.at(operands)), *dbetas = dgammas + pieces * cols;
      const NormGrad<T> g{at<const T>(operands, 0),
                          at<const T>(operands, 1),
                          call.residual ? at<const T>(operands, call.residual) : nullptr,
                          at<const S>(operands, 2),
                          centered ? at<const S>(operands, 3) : nullptr,
                          at<const S>(operands, centered ? 4 : 3),
                          at<T>(operands, call.dx),
                          rows,
                          cols,
                          cudaNormGradRows(rows, cols),
                          dgammas,
                          dbetas};
      if (pieces > 0 && cols > 0)
        withNormGradRow<T>(inPacks<T>(cols, {g.dy, g.x, g.gamma, g.residual, g.dx}), cols,
                           [&](auto width, auto kept, unsigned threads) {
                             launch<normGradKernel<T, width(), kept(), centered>>(unsigned(pieces), threads, stream, g);
                           });
      if (cols > 0)
        launch<addPiecesKernel<S>>(dim3(unsigned((cols + warpThreads - 1) / warpThreads), centered ? 2 : 1),
                                   dim3(warpThreads, piecesThreads), stream, dgammas, dbetas, pieces, cols,
                                   at<S>(operands, call.dx + 1),
                                   centered ? at<S>(operands, call.dx + 2) : static_cast<S *>(nullptr));
    });
  });
}

} // namespace ds::kernels::cuda
