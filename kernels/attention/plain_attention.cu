// Our own attention, a tile of scores at a time (Attention.cuh), with online softmax. Dao et al., "FlashAttention",
// 2022.
#include "kernels/attention/attention.cuh"
#include "kernels/attention/plain_attention.h"

namespace ds::kernels::cuda {

namespace {

/// gridDim.x: tiles of queries; y: heads of all batches; z: pieces of columns. Every piece makes the scores anew.
template <typename T>
__global__ void __launch_bounds__(attentionWarps *warpThreads)
    attentionKernel(const AttentionSpace space, const T *q, const T *k, const T *v, const AttentionMask<T> mask, T *out,
                    Sum<T> *lse) {
  using S = Sum<T>;
  __shared__ AttentionTiles<S> tiles;
  const int warp = threadIdx.x / warpThreads, lane = threadIdx.x % warpThreads;
  const int64_t firstQuery = int64_t(blockIdx.x) * attentionRows, firstColumn = int64_t(blockIdx.z) * attentionColumns;
  for (int64_t head = blockIdx.y; head < space.batch * space.heads; head += gridDim.y) {
    const int64_t group = space.groupOf(head);
    const HeadTile<T> queries(q, space.qRows(head), space.queries), others(k, space.kRows(group), space.keys),
        values(v, space.vRows(group), space.keys);
    const HeadRows outRows = space.outRows(head);
    S sums[attentionRowsPerWarp][attentionKept] = {}, largest[attentionRowsPerWarp], totals[attentionRowsPerWarp];
    for (int r = 0; r < attentionRowsPerWarp; ++r) {
      largest[r] = S(-HUGE_VAL);
      totals[r] = 0;
    }
    const int64_t lastQuery = firstQuery + attentionRows;
    const int64_t keys = space.causal && lastQuery < space.keys ? lastQuery : space.keys;
    for (int64_t key = 0; key < keys; key += warpThreads) { // the same for all threads
      S weights[attentionRowsPerWarp];
      tileProducts(tiles, queries, firstQuery, others, key, space.depth, weights);
      for (int r = 0; r < attentionRowsPerWarp; ++r) {
        const int64_t query = firstQuery + warp * attentionRowsPerWarp + r;
        const S score = space.score(weights[r], mask, head, query, key + lane);
        const S before = largest[r];
        largest[r] = Larger{}(before, warpReduce(score, Larger{}));
        // While nothing is seen there is nothing to scale, and -inf less -inf is no number.
        const bool none = largest[r] == S(-HUGE_VAL);
        weights[r] = none ? S(0) : std::exp(score - largest[r]);
        const S kept = none ? S(1) : std::exp(before - largest[r]);
        totals[r] = totals[r] * kept + warpReduce(weights[r], Plus{});
        for (int i = 0; i < attentionKept; ++i)
          sums[r][i] *= kept;
      }
      addWeighted(tiles, weights, values, key, firstColumn, space.columns, sums);
    }
    for (int r = 0; r < attentionRowsPerWarp; ++r) {
      const int64_t query = firstQuery + warp * attentionRowsPerWarp + r;
      if (query >= space.queries)
        continue;
      const bool none = largest[r] == S(-HUGE_VAL);
      for (int i = 0; i < attentionKept; ++i)
        if (const int64_t c = firstColumn + lane + i * warpThreads; c < space.columns)
          out[outRows.at(query) + c] = narrow<T>(none ? S(0) : sums[r][i] / totals[r]);
      if (lane == 0 && blockIdx.z == 0)
        lse[head * space.queries + query] = none ? S(HUGE_VAL) : largest[r] + std::log(totals[r]);
    }
  }
}

/// dots[row] = sum over columns of dout * out, of each head's queries; a warp takes a row.
template <typename T>
__global__ void __launch_bounds__(blockThreads)
    dotsKernel(const AttentionSpace space, const T *dout, const T *out, Sum<T> *dots) {
  constexpr int warps = blockThreads / warpThreads;
  const int lane = threadIdx.x % warpThreads;
  const int64_t rows = space.batch * space.heads * space.queries;
  const int64_t stride = int64_t(gridDim.x) * warps;
  for (int64_t row = int64_t(blockIdx.x) * warps + threadIdx.x / warpThreads; row < rows; row += stride) {
    const HeadRows of = space.outRows(row / space.queries);
    const int64_t at = of.at(row % space.queries);
    Sum<T> sum = 0;
    for (int64_t c = lane; c < space.columns; c += warpThreads)
      sum += wide(dout[at + c]) * wide(out[at + c]);
    sum = warpReduce(sum, Plus{});
    if (lane == 0)
      dots[row] = sum;
  }
}

template <typename T> struct GradTensors {
  const T *dout, *q, *k, *v;
  AttentionMask<T> mask;
  const Sum<T> *lse, *dots, *totals;
};

/// exp(score - lse) / total, 0 where hidden (also where lse is +inf).
template <typename S> __device__ S probability(S score, S lse, S total) {
  return score == S(-HUGE_VAL) ? S(0) : std::exp(score - lse) / total;
}

/// totals[query] = what exp(score - lse) adds up to: 1, but where a mask of large negative numbers leaves lse no digits
/// for the logarithm of a sum. With the least number of the type lse is the score itself. Grid as for attentionKernel.
template <typename T>
__global__ void __launch_bounds__(attentionWarps *warpThreads)
    totalsKernel(const AttentionSpace space, const GradTensors<T> t, Sum<T> *totals) {
  using S = Sum<T>;
  __shared__ AttentionTiles<S> tiles;
  const int warp = threadIdx.x / warpThreads, lane = threadIdx.x % warpThreads;
  const int64_t firstQuery = int64_t(blockIdx.x) * attentionRows;
  for (int64_t head = blockIdx.y; head < space.batch * space.heads; head += gridDim.y) {
    const HeadTile<T> q(t.q, space.qRows(head), space.queries), k(t.k, space.kRows(space.groupOf(head)), space.keys);
    S sums[attentionRowsPerWarp] = {};
    const auto isRounded = [&](int64_t query) {
      return query < space.queries && t.lse[head * space.queries + query] < S(-1000);
    };
    bool any = false; // the same for all threads
    for (int row = 0; row < attentionRows; ++row)
      any |= isRounded(firstQuery + row);
    const int64_t lastQuery = firstQuery + attentionRows;
    const int64_t seen = space.causal && lastQuery < space.keys ? lastQuery : space.keys, keys = any ? seen : 0;
    for (int64_t key = 0; key < keys; key += warpThreads) {
      S scores[attentionRowsPerWarp];
      tileProducts(tiles, q, firstQuery, k, key, space.depth, scores);
      for (int r = 0; r < attentionRowsPerWarp; ++r) {
        const int64_t query = firstQuery + warp * attentionRowsPerWarp + r;
        const S score = space.score(scores[r], t.mask, head, query, key + lane);
        sums[r] += isRounded(query) ? probability(score, t.lse[head * space.queries + query], S(1)) : S(0);
      }
    }
    for (int r = 0; r < attentionRowsPerWarp; ++r) {
      const S total = warpReduce(sums[r], Plus{});
      if (const int64_t query = firstQuery + warp * attentionRowsPerWarp + r; lane == 0 && query < space.queries)
        totals[head * space.queries + query] = isRounded(query) ? total : S(1);
    }
  }
}

/// dq[query] = sum over keys of p (dp - dot) scale k[key]. Grid as for attentionKernel, z: pieces of depth.
template <typename T>
__global__ void __launch_bounds__(attentionWarps *warpThreads)
    queryGradKernel(const AttentionSpace space, const GradTensors<T> t, T *dq) {
  using S = Sum<T>;
  __shared__ AttentionTiles<S> tiles;
  const int warp = threadIdx.x / warpThreads, lane = threadIdx.x % warpThreads;
  const int64_t firstQuery = int64_t(blockIdx.x) * attentionRows, firstColumn = int64_t(blockIdx.z) * attentionColumns;
  for (int64_t head = blockIdx.y; head < space.batch * space.heads; head += gridDim.y) {
    const HeadTile<T> q(t.q, space.qRows(head), space.queries), dout(t.dout, space.outRows(head), space.queries),
        k(t.k, space.kRows(space.groupOf(head)), space.keys), v(t.v, space.vRows(space.groupOf(head)), space.keys);
    const HeadRows dqRows = space.qRows(head);
    S sums[attentionRowsPerWarp][attentionKept] = {};
    const int64_t lastQuery = firstQuery + attentionRows;
    const int64_t keys = space.causal && lastQuery < space.keys ? lastQuery : space.keys;
    for (int64_t key = 0; key < keys; key += warpThreads) {
      S scores[attentionRowsPerWarp], dps[attentionRowsPerWarp];
      tileProducts(tiles, q, firstQuery, k, key, space.depth, scores);
      tileProducts(tiles, dout, firstQuery, v, key, space.columns, dps);
      for (int r = 0; r < attentionRowsPerWarp; ++r) {
        const int64_t query = firstQuery + warp * attentionRowsPerWarp + r, row = head * space.queries + query;
        const S score = space.score(scores[r], t.mask, head, query, key + lane);
        scores[r] = query < space.queries // else the row's numbers lie outside
                        ? probability(score, t.lse[row], t.totals[row]) * (dps[r] - t.dots[row]) * S(space.scale)
                        : S(0);
      }
      addWeighted(tiles, scores, k, key, firstColumn, space.depth, sums);
    }
    for (int r = 0; r < attentionRowsPerWarp; ++r) {
      const int64_t query = firstQuery + warp * attentionRowsPerWarp + r;
      for (int i = 0; i < attentionKept; ++i)
        if (const int64_t c = firstColumn + lane + i * warpThreads; query < space.queries && c < space.depth)
          dq[dqRows.at(query) + c] = narrow<T>(sums[r][i]);
    }
  }
}

/// With ofKeys  dk[key] = sum over the group's heads and queries of p (dp - dot) scale q[query], else
/// dv[key] = sum of p dout[query]. gridDim.x: tiles of keys; y: groups of all batches; z: pieces of depth or columns.
template <typename T, bool ofKeys>
__global__ void __launch_bounds__(attentionWarps *warpThreads)
    keyGradKernel(const AttentionSpace space, const GradTensors<T> t, T *result) {
  using S = Sum<T>;
  __shared__ AttentionTiles<S> tiles;
  const int warp = threadIdx.x / warpThreads, lane = threadIdx.x % warpThreads;
  const int64_t firstKey = int64_t(blockIdx.x) * attentionRows, firstColumn = int64_t(blockIdx.z) * attentionColumns;
  const int64_t width = ofKeys ? space.depth : space.columns, perGroup = space.heads / space.groups;
  for (int64_t group = blockIdx.y; group < space.batch * space.groups; group += gridDim.y) {
    const HeadTile<T> k(t.k, space.kRows(group), space.keys), v(t.v, space.vRows(group), space.keys);
    const HeadRows resultRows = ofKeys ? space.kRows(group) : space.vRows(group);
    S sums[attentionRowsPerWarp][attentionKept] = {};
    const int64_t begin = space.causal ? firstKey / warpThreads * warpThreads : 0; // earlier queries see none of these
    for (int64_t head = group * perGroup; head < (group + 1) * perGroup; ++head) {
      const HeadTile<T> q(t.q, space.qRows(head), space.queries), dout(t.dout, space.outRows(head), space.queries);
      for (int64_t first = begin; first < space.queries; first += warpThreads) {
        const int64_t query = first + lane, row = head * space.queries + query;
        const bool inside = query < space.queries;
        const S lse = inside ? t.lse[row] : S(HUGE_VAL), total = inside ? t.totals[row] : S(1);
        const S dot = ofKeys && inside ? t.dots[row] : S(0);
        S weights[attentionRowsPerWarp], dps[attentionRowsPerWarp];
        tileProducts(tiles, k, firstKey, q, first, space.depth, weights);
        if constexpr (ofKeys)
          tileProducts(tiles, v, firstKey, dout, first, space.columns, dps);
        for (int r = 0; r < attentionRowsPerWarp; ++r) {
          const int64_t key = firstKey + warp * attentionRowsPerWarp + r;
          weights[r] = probability(space.score(weights[r], t.mask, head, query, key), lse, total);
          if constexpr (ofKeys)
            weights[r] *= (dps[r] - dot) * S(space.scale);
        }
        addWeighted(tiles, weights, ofKeys ? q : dout, first, firstColumn, width, sums);
      }
    }
    for (int r = 0; r < attentionRowsPerWarp; ++r) {
      const int64_t key = firstKey + warp * attentionRowsPerWarp + r;
      for (int i = 0; i < attentionKept; ++i)
        if (const int64_t c = firstColumn + lane + i * warpThreads; key < space.keys && c < width)
          result[resultRows.at(key) + c] = narrow<T>(sums[r][i]);
    }
  }
}

unsigned piecesOfColumns(int64_t columns) { return unsigned((columns + attentionColumns - 1) / attentionColumns); }

dim3 gridOf(int64_t rows, int64_t heads, int64_t columns) {
  return {unsigned((rows + attentionRows - 1) / attentionRows), unsigned(std::min<int64_t>(heads, 65535)),
          piecesOfColumns(columns)};
}

constexpr unsigned threads = attentionWarps * warpThreads;

} // namespace

void enqueuePlainAttention(const AttentionCall &call, const PlainOperands &o, cudaStream_t stream) {
  const AttentionSpace space(call);
  const int64_t heads = call.batch * call.heads;
  if (heads == 0 || call.queries == 0)
    return;
  withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    // Without columns lse is still due.
    launch<attentionKernel<T>>(gridOf(call.queries, heads, std::max<int64_t>(call.columns, 1)), threads, stream, space,
                               static_cast<const T *>(o.q), static_cast<const T *>(o.k), static_cast<const T *>(o.v),
                               AttentionMask<T>{o.mask}, static_cast<T *>(o.out), static_cast<Sum<T> *>(o.lse));
  });
}

void enqueuePlainAttentionGrad(const AttentionCall &call, const PlainGradOperands &o, cudaStream_t stream) {
  const AttentionSpace space(call);
  const int64_t heads = call.batch * call.heads, rows = heads * call.queries, groups = call.batch * call.groups;
  withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    Sum<T> *dots = static_cast<Sum<T> *>(o.workspace), *totals = dots + rows;
    const GradTensors<T> t{static_cast<const T *>(o.dout),
                           static_cast<const T *>(o.q),
                           static_cast<const T *>(o.k),
                           static_cast<const T *>(o.v),
                           AttentionMask<T>{o.mask},
                           static_cast<const Sum<T> *>(o.lse),
                           dots,
                           totals};
    if (rows > 0) {
      launch<dotsKernel<T>>(blocksFor(rows, blockThreads / warpThreads), blockThreads, stream, space, t.dout,
                            static_cast<const T *>(o.out), dots);
      launch<totalsKernel<T>>(gridOf(call.queries, heads, 1), threads, stream, space, t, totals);
    }
    if (rows > 0 && call.depth > 0)
      launch<queryGradKernel<T>>(gridOf(call.queries, heads, call.depth), threads, stream, space, t,
                                 static_cast<T *>(o.dq));
    if (groups > 0 && call.keys > 0 && call.depth > 0)
      launch<keyGradKernel<T, true>>(gridOf(call.keys, groups, call.depth), threads, stream, space, t,
                                     static_cast<T *>(o.dk));
    if (groups > 0 && call.keys > 0 && call.columns > 0)
      launch<keyGradKernel<T, false>>(gridOf(call.keys, groups, call.columns), threads, stream, space, t,
                                      static_cast<T *>(o.dv));
  });
}

} // namespace ds::kernels::cuda
