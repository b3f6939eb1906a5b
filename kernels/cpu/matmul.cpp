// matmul: c[..., m, n] = op(a)[..., m, k] op(b)[..., k, n] + bias, float32 and float64.
//
// Blocked and packed (matmul_loops.h) in two forms, chosen when the kernel is built:
//   shared   one large product: all workers pack a block of a and one of b into the workspace, then all multiply.
//   private  many small products: each piece packs its own operands into its worker's part of the workspace.
// Blocks follow from the shape and the workspace's size alone, a piece computes its part of c from start to end, and
// blocks of k are added in order: the bits do not depend on the number of workers. They depend on the instruction set,
// whose fused multiply-add and tile are used. Too small a workspace makes blocks smaller, and in the end the packing
// buffer is 32 KiB of stack: no workspace is refused.
#include "kernels/cpu/matmul.h"
#include "kernels/MatmulBlocks.h"
#include "kernels/cpu/Factories.h"

#include <algorithm>
#include <cstddef>

#define DS_LOOPS "kernels/cpu/matmul_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

/// Multiplying pieces: about this many rows and columns, whose packed operands stay in the second-level cache.
constexpr int64_t pieceRows = 112, pieceCols = 256;

constexpr int64_t roundUp(int64_t value, int64_t multiple) { return piecesOf(value, multiple) * multiple; }
constexpr int64_t roundDown(int64_t value, int64_t multiple) { return value / multiple * multiple; }

template <typename T> class Matmul : public Kernel {
public:
  Matmul(const MatmulCall &call, int maxWorkers) : call_(call) {
    DS_BEST(tileShape<T>)(tileRows_, tileCols_);
    foldBatches();
    aStride_ = call_.transA ? 1 : call_.k;
    aDepthStride_ = call_.transA ? call_.m : 1;
    bStride_ = call_.transB ? call_.k : 1;
    bDepthStride_ = call_.transB ? 1 : call_.n;
    chooseBlocks();
    if (!shared_)
      concurrency_ = onStack_ ? maxWorkers : int(std::clamp<int64_t>(usableBytes_ / privateBytes(), 1, maxWorkers));
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    if (call_.m == 0 || call_.n == 0 || call_.batches == 0)
      return Status::success();
    const Addresses at{static_cast<const T *>(operands[0]), static_cast<const T *>(operands[1]),
                       call_.bias ? static_cast<const T *>(operands[2]) : nullptr, static_cast<T *>(operands[call_.c]),
                       aligned(operands[call_.c + 1])};
    if (call_.k == 0)
      fillWithBias(at);
    else if (shared_)
      runShared(context, at);
    else
      runPrivate(context, at);
    return Status::success();
  }

private:
  struct Addresses {
    const T *a, *b, *bias;
    T *c, *workspace;
  };
  /// Part [first, first + count) of a dimension.
  struct Range {
    int64_t first, count;
  };

  static T *aligned(void *workspace) {
    return reinterpret_cast<T *>((reinterpret_cast<uintptr_t>(workspace) + 63) / 64 * 64);
  }

  static Range rangeOf(int64_t index, int64_t block, int64_t total) {
    return {index * block, std::min(block, total - index * block)};
  }

  /// One b for all batches and rows of a that follow each other: one product of batches * m rows.
  void foldBatches() {
    const auto zero = [](int64_t stride) { return stride == 0; };
    bool whole = !call_.transA && std::all_of(call_.bBatchStrides.begin(), call_.bBatchStrides.end(), zero);
    int64_t stride = 1;
    for (size_t d = call_.batch.size(); d-- > 0;) {
      whole = whole && (call_.aBatchStrides[d] == stride || call_.batch[d] == 1);
      stride *= call_.batch[d];
    }
    if (!whole)
      return;
    call_.m *= call_.batches;
    call_.batches = 1;
    call_.batch.clear();
  }

  int64_t privateBytes() const { return roundUp((rows_ + cols_) * depth_ * int64_t(sizeof(T)), 64); }

  void chooseBlocks() {
    usableBytes_ = std::max<int64_t>(0, roundDown(call_.workspaceBytes - 63, 64));
    onStack_ = usableBytes_ < matmulStackBytes;
    const int64_t room = (onStack_ ? matmulStackBytes : usableBytes_) / int64_t(sizeof(T)),
                  k = std::max<int64_t>(call_.k, 1);
    depth_ = piecesOf(k, piecesOf(k, matmulDepth));
    rows_ = roundUp(std::clamp<int64_t>(call_.m, 1, matmulStripeRows), tileRows_);
    cols_ = roundUp(std::clamp<int64_t>(call_.n, 1, matmulBlockCols), tileCols_);
    const bool small = double(call_.m) * double(call_.n) * double(call_.k) <= matmulSmallProduct;
    shared_ = !onStack_ && !small &&
              (call_.batches < 4 || privateBytes() > matmulStripeBytes || privateBytes() > usableBytes_);
    if (shared_)
      rows_ = roundUp(std::clamp<int64_t>(call_.m, 1, matmulBlockRows), tileRows_);
    while ((rows_ + cols_) * depth_ > room && (rows_ > tileRows_ || cols_ > tileCols_)) {
      if (cols_ > tileCols_ && (cols_ >= rows_ || rows_ == tileRows_))
        cols_ = shrunk(cols_, tileCols_);
      else
        rows_ = shrunk(rows_, tileRows_);
    }
    depth_ = std::min(depth_, std::max<int64_t>(1, room / (rows_ + cols_)));
    span_ = depth_ * std::clamp<int64_t>(room / ((rows_ + cols_) * depth_), 1, piecesOf(k, depth_));
  }

  /// About half of `block`, a smaller multiple of `tile`; block is a multiple above one tile.
  static int64_t shrunk(int64_t block, int64_t tile) { return std::min(roundUp(block / 2, tile), block - tile); }

  const T *matrixA(const Addresses &at, int64_t batch) const {
    return at.a + call_.matrixOf(call_.aBatchStrides, batch) * call_.m * call_.k;
  }
  const T *matrixB(const Addresses &at, int64_t batch) const {
    return at.b + call_.matrixOf(call_.bBatchStrides, batch) * call_.k * call_.n;
  }

  void fillWithBias(const Addresses &at) const {
    for (int64_t row = 0; row < call_.batches * call_.m; ++row)
      for (int64_t j = 0; j < call_.n; ++j)
        at.c[row * call_.n + j] = at.bias ? at.bias[j] : T(0);
  }

  void packA(const T *a, Range rows, Range depth, T *packed) const {
    packLeft_(a + rows.first * aStride_ + depth.first * aDepthStride_, aStride_, aDepthStride_, rows.count, depth.count,
              packed);
  }
  void packB(const T *b, Range cols, Range depth, T *packed) const {
    packRight_(b + cols.first * bStride_ + depth.first * bDepthStride_, bStride_, bDepthStride_, cols.count,
               depth.count, packed);
  }

  /// c's block = packed a * packed b, added to what earlier depths left; the bias comes with the last depth.
  void multiply(const Addresses &at, const T *packedA, const T *packedB, int64_t batch, Range rows, Range cols,
                Range depth) const {
    const bool last = depth.first + depth.count == call_.k;
    multiply_(packedA, packedB, rows.count, cols.count, depth.count,
              at.c + (batch * call_.m + rows.first) * call_.n + cols.first, call_.n, depth.first > 0,
              last && at.bias ? at.bias + cols.first : nullptr);
  }

  void runShared(const CallContext &context, const Addresses &at) const {
    for (int64_t batch = 0; batch < call_.batches; ++batch)
      for (int64_t i = 0; i < piecesOf(call_.m, rows_); ++i)
        for (int64_t j = 0; j < piecesOf(call_.n, cols_); ++j)
          for (int64_t l = 0; l < piecesOf(call_.k, span_); ++l)
            runBlock(context, at, batch, rangeOf(i, rows_, call_.m), rangeOf(j, cols_, call_.n),
                     rangeOf(l, span_, call_.k));
  }

  /// One block of c and one span of depths: pack what is not packed yet, then multiply.
  void runBlock(const CallContext &context, const Addresses &at, int64_t batch, Range rows, Range cols,
                Range span) const {
    T *packedA = at.workspace, *packedB = at.workspace + rows_ * span_;
    const bool oneSpan = call_.k <= span_;
    const bool newA = !oneSpan || cols.first == 0; // else it is what the block to the left used
    const bool newB = !oneSpan || rows.first == 0 || call_.n > cols_;
    const int64_t stepA = roundUp(pieceRows, tileRows_), stepB = roundUp(pieceCols, tileCols_);
    const int64_t down = piecesOf(rows.count, stepA), across = piecesOf(cols.count, stepB);
    const int64_t depths = piecesOf(span.count, depth_), piecesA = newA ? down * depths : 0;
    parallelFor(context, piecesA + (newB ? across * depths : 0), [&](int64_t piece, int) {
      const bool isA = piece < piecesA;
      const int64_t index = isA ? piece : piece - piecesA;
      const Range depth = rangeOf(index % depths, depth_, span.count);
      const Range part = isA ? rangeOf(index / depths, stepA, rows.count) : rangeOf(index / depths, stepB, cols.count);
      const Range from{span.first + depth.first, depth.count};
      if (isA)
        packA(matrixA(at, batch), {rows.first + part.first, part.count}, from,
              packedA + rows_ * depth.first + part.first * depth.count);
      else
        packB(matrixB(at, batch), {cols.first + part.first, part.count}, from,
              packedB + cols_ * depth.first + part.first * depth.count);
    });
    parallelFor(context, down * across, [&](int64_t piece, int) {
      // Columns in the outer loop: a piece of packed b stays in the second-level cache while those of a pass by.
      const Range r = rangeOf(piece / across, stepA, rows.count), c = rangeOf(piece % across, stepB, cols.count);
      for (int64_t l = 0; l < depths; ++l) {
        const Range depth = rangeOf(l, depth_, span.count);
        multiply(at, packedA + rows_ * depth.first + r.first * depth.count,
                 packedB + cols_ * depth.first + c.first * depth.count, batch, {rows.first + r.first, r.count},
                 {cols.first + c.first, c.count}, {span.first + depth.first, depth.count});
      }
    });
  }

  void runPrivate(const CallContext &context, const Addresses &at) const {
    const int64_t blocks = piecesOf(call_.m, rows_);
    const int64_t slot = privateBytes() / int64_t(sizeof(T));
    parallelFor(
        context, call_.batches * blocks,
        [&](int64_t piece, int worker) {
          alignas(64) std::byte stack[matmulStackBytes];
          T *packed = onStack_ ? reinterpret_cast<T *>(stack) : at.workspace + worker * slot;
          runStripe(at, packed, piece / blocks, rangeOf(piece % blocks, rows_, call_.m));
        },
        concurrency_);
  }

  /// Some rows of one product of c, by one worker.
  void runStripe(const Addresses &at, T *packed, int64_t batch, Range rows) const {
    for (int64_t l = 0; l < piecesOf(call_.k, depth_); ++l) {
      const Range depth = rangeOf(l, depth_, call_.k);
      packA(matrixA(at, batch), rows, depth, packed);
      T *packedB = packed + rows_ * depth_;
      for (int64_t j = 0; j < piecesOf(call_.n, cols_); ++j) {
        const Range cols = rangeOf(j, cols_, call_.n);
        packB(matrixB(at, batch), cols, depth, packedB);
        multiply(at, packed, packedB, batch, rows, cols, depth);
      }
    }
  }

  MatmulCall call_;
  int64_t tileRows_ = 1, tileCols_ = 1;
  int64_t aStride_, aDepthStride_, bStride_, bDepthStride_; ///< between rows of op(a) or columns of op(b); along k
  int64_t rows_ = 1, cols_ = 1, depth_ = 1;                 ///< of packed blocks: a [rows, depth], b [depth, cols]
  int64_t span_ = 1;                                        ///< depths that are packed at once, in the shared form
  int64_t usableBytes_ = 0;                                 ///< of the workspace, once aligned
  int concurrency_ = 0;                                     ///< workers that have a part of the workspace; 0: all
  bool shared_ = false, onStack_ = false;
  decltype(&baseline::packLeft<T>) packLeft_ = DS_BEST(packLeft<T>);
  decltype(&baseline::packRight<T>) packRight_ = DS_BEST(packRight<T>);
  decltype(&baseline::multiplyBlock<T>) multiply_ = DS_BEST(multiplyBlock<T>);
};

} // namespace

std::unique_ptr<Kernel> makeMatmul(const Invocation &invocation, const BuildOptions &options) {
  const MatmulCall call{Call(invocation)};
  return makeByFloat<Matmul>(call.dtype, call, std::max(1, options.maxWorkers));
}

} // namespace ds::kernels
