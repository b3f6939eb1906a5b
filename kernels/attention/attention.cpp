// attention: out = softmax(scale * q k^T + mask) v, lse = log sum exp of the scores' rows.
//
// Dao et al., "FlashAttention", 2022: scores exist a tile at a time, 128 queries by 128 keys on the worker's stack, and
// the softmax is brought up to date as tiles come by in order of the keys. A piece is 128 queries of one head, so bits
// do not depend on the number of workers. Tiles that a causal mask hides whole are left out.
// The workspace is where products are packed for tile registers.
#include "kernels/attention/attention_call.h"
#include "kernels/cpu/Gemm.h"

#include <atomic>

#define DS_LOOPS "kernels/attention/attention_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

template <typename T> class Attention : public Kernel {
public:
  Attention(const AttentionCall &call, int workers) : call_(call), scratch_(call.workspace.bytes, workers) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const AttentionOperands apart = call_.apart(operands);
    const Addresses at{static_cast<const T *>(apart[0]),    static_cast<const T *>(apart[1]),
                       static_cast<const T *>(apart[2]),    apart[3],
                       static_cast<T *>(apart[call_.next]), static_cast<T *>(apart[call_.next + 1])};
    const int64_t tiles = piecesOf(call_.queries, attentionTile);
    void *workspace = call_.workspace.at(operands);
    std::atomic<bool> done = true;
    parallelFor(context, call_.batch * call_.heads * tiles, [&](int64_t piece, int worker) {
      if (!runTile(at, piece / tiles, piece % tiles * attentionTile, scratch_.of(workspace, worker)))
        done = false;
    });
    return done ? Status::success() : Status::failure("attention: no memory was left for a product");
  }

private:
  struct Addresses {
    const T *q, *k, *v;
    const void *mask;
    T *out, *lse;
  };

  /// attentionTile queries of one head (of all batches), from `query` on.
  bool runTile(const Addresses &at, int64_t head, int64_t query, Scratch scratch) const {
    alignas(64) T tile[attentionTile * attentionTile];
    T maximum[attentionTile];
    double sum[attentionTile] = {};
    const int64_t rows = std::min(attentionTile, call_.queries - query), depth = call_.depth, columns = call_.columns;
    const int64_t group = call_.groupOf(head), keys = call_.keysSeen(query + rows);
    const HeadRows qRows = call_.qRows(head), outRows = call_.outRows(head), kRows = call_.kRows(group),
                   vRows = call_.vRows(group);
    const T *q = at.q + qRows.at(query);
    T *out = at.out + outRows.at(query);
    std::fill_n(maximum, attentionTile, -std::numeric_limits<T>::infinity());
    for (int64_t r = 0; r < rows; ++r)
      std::fill_n(out + r * outRows.stride, columns, T(0));
    for (int64_t key = 0; key < keys; key += attentionTile) {
      const int64_t cols = std::min(attentionTile, call_.keys - key);
      const T *k = at.k + kRows.at(key), *v = at.v + vRows.at(key);
      if (depth == 0)
        std::fill_n(tile, attentionTile * attentionTile, T(0));
      else if (!multiply(Gemm<T>{q, k, tile, rows, cols, depth, qRows.stride, kRows.stride, attentionTile, false, true,
                                 false},
                         scratch))
        return false;
      mask_(tile, rows, cols, T(call_.scale), call_.maskAt<T>(at.mask, head, query, key));
      soften_(tile, rows, cols, maximum, sum, out, columns, outRows.stride);
      if (columns > 0 && !multiply(Gemm<T>{tile, v, out, rows, columns, cols, attentionTile, vRows.stride,
                                           outRows.stride, false, false, true},
                                   scratch))
        return false;
    }
    finish_(rows, maximum, sum, out, columns, outRows.stride, at.lse + head * call_.queries + query);
    return true;
  }

  AttentionCall call_;
  WorkerScratch scratch_;
  decltype(&baseline::maskTile<T>) mask_ = DS_BEST(maskTile<T>);
  decltype(&baseline::softenTile<T>) soften_ = DS_BEST(softenTile<T>);
  decltype(&baseline::finishRows<T>) finish_ = DS_BEST(finishRows<T>);
};

} // namespace

std::unique_ptr<Kernel> makeAttention(const Invocation &invocation, const BuildOptions &options) {
  const AttentionCall call{Call(invocation)};
  return makeByFloat<Attention>(call.dtype, call, options.maxWorkers);
}

std::unique_ptr<Kernel> makePackedAttention(const Invocation &invocation, const BuildOptions &options) {
  return makeAttention(invocation, options);
}

} // namespace ds::kernels
