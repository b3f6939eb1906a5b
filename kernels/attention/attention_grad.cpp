// attention_grad: the gradients of q, k and v from that of attention's result.
//
// Dao et al., "FlashAttention", 2022: probabilities are drawn again, a tile of 128 queries by 128 keys at a time, from
// q, k and lse. A piece is one group of k and v with all heads that read it, so that dk and dv are sums in one order
// (heads, then queries) and bits do not depend on the number of workers. Two tiles lie on the worker's stack;
// the workspace is where products are packed for tile registers.
#include "kernels/attention/attention_call.h"
#include "kernels/cpu/Gemm.h"

#include <atomic>

#define DS_LOOPS "kernels/attention/attention_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

template <typename T> class AttentionGrad : public Kernel {
public:
  AttentionGrad(const AttentionCall &call, int workers) : call_(call), scratch_(call.workspace.bytes, workers) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const AttentionOperands apart = call_.apart(operands);
    const auto read = [&](size_t i) { return static_cast<const T *>(apart[i]); };
    const auto write = [&](size_t i) { return static_cast<T *>(apart[i]); };
    const size_t n = call_.next;
    const Addresses at{read(0), read(1),     read(2),      read(3),      apart[4],
                       read(n), read(n + 1), write(n + 2), write(n + 3), write(n + 4)};
    void *workspace = call_.workspace.at(operands);
    std::atomic<bool> done = true;
    parallelFor(context, call_.batch * call_.groups, [&](int64_t group, int worker) {
      if (!runGroup(at, group, scratch_.of(workspace, worker)))
        done = false;
    });
    return done ? Status::success() : Status::failure("attention_grad: no memory was left for a product");
  }

private:
  struct Addresses {
    const T *dout, *q, *k, *v;
    const void *mask;
    const T *out, *lse;
    T *dq, *dk, *dv;
  };
  struct Tile {
    int64_t head, query, key, rows, cols;
  };

  /// One group (of all batches) of k and v: every head that reads it, every tile.
  bool runGroup(const Addresses &at, int64_t group, Scratch scratch) const {
    const int64_t sharing = call_.heads / call_.groups, depth = call_.depth, columns = call_.columns;
    for (int64_t head = group * sharing; head < (group + 1) * sharing; ++head)
      clear(at.dq, call_.qRows(head), call_.queries, depth);
    clear(at.dk, call_.kRows(group), call_.keys, depth);
    clear(at.dv, call_.vRows(group), call_.keys, columns);
    if (depth == 0 || columns == 0)
      return true;
    T deltas[attentionTile];
    double totals[attentionTile];
    for (int64_t head = group * sharing; head < (group + 1) * sharing; ++head)
      for (int64_t query = 0; query < call_.queries; query += attentionTile) {
        const int64_t rows = std::min(attentionTile, call_.queries - query);
        const HeadRows outRows = call_.outRows(head);
        const int64_t first = outRows.at(query);
        dots_(at.out + first, at.dout + first, rows, columns, outRows.stride, deltas);
        if (!sumRounded(at, {head, query, 0, rows, 0}, totals, scratch))
          return false;
        for (int64_t key = 0; key < call_.keysSeen(query + rows); key += attentionTile)
          if (!runTile(at, {head, query, key, rows, std::min(attentionTile, call_.keys - key)}, deltas, totals,
                       scratch))
            return false;
      }
    return true;
  }

  /// What exp(score - lse) of a row adds up to: 1, but where a mask of large negative numbers leaves lse no digits for
  /// the logarithm of a sum. With the least number of the type lse is the score itself.
  bool sumRounded(const Addresses &at, Tile t, double *totals, Scratch scratch) const {
    const T *lse = at.lse + t.head * call_.queries + t.query;
    bool rounded = false;
    for (int64_t r = 0; r < t.rows; ++r) {
      const bool far = lse[r] < T(-1000);
      totals[r] = far ? 0 : 1;
      rounded |= far;
    }
    if (!rounded)
      return true;
    alignas(64) T p[attentionTile * attentionTile];
    for (; t.key < call_.keysSeen(t.query + t.rows); t.key += attentionTile) {
      t.cols = std::min(attentionTile, call_.keys - t.key);
      if (!drawAgain(at, t, p, scratch))
        return false;
      for (int64_t r = 0; r < t.rows; ++r)
        for (int64_t c = 0; c < t.cols && lse[r] < T(-1000); ++c)
          totals[r] += double(p[r * attentionTile + c]);
    }
    return true;
  }

  /// p = exp(score - lse).
  bool drawAgain(const Addresses &at, const Tile &t, T *p, Scratch scratch) const {
    const int64_t group = call_.groupOf(t.head), side = attentionTile;
    const HeadRows qRows = call_.qRows(t.head), kRows = call_.kRows(group);
    if (!multiply(Gemm<T>{at.q + qRows.at(t.query), at.k + kRows.at(t.key), p, t.rows, t.cols, call_.depth,
                          qRows.stride, kRows.stride, side, false, true, false},
                  scratch))
      return false;
    mask_(p, t.rows, t.cols, T(call_.scale), call_.maskAt<T>(at.mask, t.head, t.query, t.key));
    probabilities_(p, t.rows, t.cols, at.lse + t.head * call_.queries + t.query);
    return true;
  }

  bool runTile(const Addresses &at, const Tile &t, const T *deltas, const double *totals, Scratch scratch) const {
    alignas(64) T p[attentionTile * attentionTile], ds[attentionTile * attentionTile];
    const int64_t group = call_.groupOf(t.head);
    const int64_t depth = call_.depth, columns = call_.columns, side = attentionTile;
    const HeadRows qRows = call_.qRows(t.head), outRows = call_.outRows(t.head), kRows = call_.kRows(group),
                   vRows = call_.vRows(group);
    const int64_t atQ = qRows.at(t.query), atOut = outRows.at(t.query), atK = kRows.at(t.key), atV = vRows.at(t.key);
    const T *q = at.q + atQ, *dout = at.dout + atOut, *k = at.k + atK, *v = at.v + atV, scale = T(call_.scale);
    if (!drawAgain(at, t, p, scratch) ||
        !multiply(Gemm<T>{dout, v, ds, t.rows, t.cols, columns, outRows.stride, vRows.stride, side, false, true, false},
                  scratch))
      return false;
    for (int64_t r = 0; r < t.rows; ++r)
      for (int64_t c = 0; c < t.cols && totals[r] != 1; ++c)
        p[r * side + c] = T(double(p[r * side + c]) / totals[r]);
    gradient_(ds, p, t.rows, t.cols, deltas, scale);
    T *dq = at.dq + atQ, *dk = at.dk + atK, *dv = at.dv + atV;
    return multiply(
               Gemm<T>{p, dout, dv, t.cols, columns, t.rows, side, outRows.stride, vRows.stride, true, false, true},
               scratch) &&
           multiply(Gemm<T>{ds, q, dk, t.cols, depth, t.rows, side, qRows.stride, kRows.stride, true, false, true},
                    scratch) &&
           multiply(Gemm<T>{ds, k, dq, t.rows, depth, t.cols, side, kRows.stride, qRows.stride, false, false, true},
                    scratch);
  }

  static void clear(T *tensor, const HeadRows &rows, int64_t count, int64_t width) {
    for (int64_t r = 0; r < count; ++r)
      std::fill_n(tensor + rows.at(r), width, T(0));
  }

  AttentionCall call_;
  WorkerScratch scratch_;
  decltype(&baseline::maskTile<T>) mask_ = DS_BEST(maskTile<T>);
  decltype(&baseline::probabilitiesOf<T>) probabilities_ = DS_BEST(probabilitiesOf<T>);
  decltype(&baseline::rowDots<T>) dots_ = DS_BEST(rowDots<T>);
  decltype(&baseline::gradientTile<T>) gradient_ = DS_BEST(gradientTile<T>);
};

} // namespace

std::unique_ptr<Kernel> makeAttentionGrad(const Invocation &invocation, const BuildOptions &options) {
  const AttentionCall call{Call(invocation)};
  return makeByFloat<AttentionGrad>(call.dtype, call, options.maxWorkers);
}

std::unique_ptr<Kernel> makePackedAttentionGrad(const Invocation &invocation, const BuildOptions &options) {
  return makeAttentionGrad(invocation, options);
}

} // namespace ds::kernels
