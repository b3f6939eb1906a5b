// matmul: c[..., m, n] = op(a)[..., m, k] op(b)[..., k, n] + bias, float32 and float64.
//
// c is cut into pieces by its shape and by the plan's `pieces`, and one worker computes a piece from start to end, so
// the bits do not depend on the workers of the run. In float32 a piece runs on tile registers or is one dnnl_sgemm,
// which is told to use one thread: of oneDNN's forms it is the fastest on a transformer's products (docs/kernels.md).
#include "kernels/cpu/Factories.h"
#include "kernels/cpu/Gemm.h"
#include "kernels/matmul/matmul_call.h"
#include "kernels/matmul/matmul_epilogue.h"

#include <algorithm>
#include <atomic>

namespace ds::kernels {

namespace {

/// Elements of the largest piece: oneDNN packs its operands into some MB, and a worker that is late holds up one piece.
constexpr int64_t maxPieceElements = 1024 * 3072;
/// Pieces are not cut below this; oneDNN's tile is 48 columns wide for AVX-512.
constexpr int64_t minPieceRows = 32, minPieceCols = 48;

/// How many parts of a matrix lie below each other and side by side.
struct Grid {
  int64_t down = 1, across = 1;
};

/// `count` parts of [m, n], or as many as leave them large enough; of the grids of so many the one for which sgemm
/// reads least: all of a for each column of parts, all of b for each row of them.
Grid chooseGrid(int64_t m, int64_t n, int64_t count) {
  for (; count > 1; --count) {
    Grid best;
    for (int64_t across = 1; across <= count; ++across) {
      const Grid grid{count / across, across};
      const bool fits = count % across == 0 && (grid.down == 1 || m / grid.down >= minPieceRows) &&
                        (grid.across == 1 || n / grid.across >= minPieceCols);
      const bool first = best.down * best.across == 1;
      if (fits && (first || m * grid.across + n * grid.down < m * best.across + n * best.down))
        best = grid;
    }
    if (best.down * best.across == count)
      return best;
  }
  return {};
}

template <typename T> class Matmul : public Kernel {
public:
  explicit Matmul(const MatmulCall &call) : call_(call) {
    foldBatches();
    const int64_t total = call_.batches * call_.m * call_.n;
    const int64_t rounds = std::max<int64_t>(piecesOf(total, call_.pieces * maxPieceElements), 1);
    const int64_t pieces = std::min(call_.pieces * std::min(rounds, matmulMaxPieces), matmulMaxPieces);
    const Grid grid = chooseGrid(call_.m, call_.n, piecesOf(pieces, std::max<int64_t>(call_.batches, 1)));
    pieceRows_ = std::max<int64_t>(piecesOf(call_.m, grid.down), 1);
    pieceCols_ = std::max<int64_t>(piecesOf(call_.n, grid.across), 1);
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *a = static_cast<const T *>(operands[0]), *b = static_cast<const T *>(operands[1]);
    const auto *bias = call_.bias ? static_cast<const T *>(operands[2]) : nullptr;
    T *c = static_cast<T *>(operands[call_.product()]);
    const int64_t down = piecesOf(call_.m, pieceRows_), across = piecesOf(call_.n, pieceCols_);
    std::atomic<bool> done = true;
    parallelFor(context, call_.batches * down * across, [&](int64_t piece, int) {
      const int64_t batch = piece / (down * across);
      // Neighbouring pieces share columns of b, which are mostly weights and more than a cache holds.
      if (!runPiece(a, b, bias, c, batch, piece % down * pieceRows_, piece / down % across * pieceCols_))
        done = false;
    });
    runMatmulEpilogue<T>(call_, context, operands);
    return done ? Status::success()
                : Status::failure("no memory was left for a product of [%lld, %lld] by [%lld, %lld]",
                                  (long long)call_.m, (long long)call_.k, (long long)call_.k, (long long)call_.n);
  }

private:
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

  bool runPiece(const T *a, const T *b, const T *bias, T *c, int64_t batch, int64_t row, int64_t col) const {
    const int64_t m = call_.m, n = call_.n, k = call_.k;
    const int64_t rows = std::min(pieceRows_, m - row), cols = std::min(pieceCols_, n - col);
    a += call_.matrixOf(call_.aBatchStrides, batch) * m * k + (call_.transA ? row : row * k);
    b += call_.matrixOf(call_.bBatchStrides, batch) * k * n + (call_.transB ? col * k : col);
    c += (batch * m + row) * n + col;
    const int64_t aStride = call_.transA ? m : k, bStride = call_.transB ? k : n;
    return multiply(Gemm<T>{a, b, c, rows, cols, k, aStride, bStride, n, call_.transA, call_.transB, /*add=*/false,
                            bias ? bias + col : nullptr});
  }

  MatmulCall call_;
  int64_t pieceRows_, pieceCols_;
};

} // namespace

std::unique_ptr<Kernel> makeMatmul(const Invocation &invocation, const BuildOptions &) {
  const MatmulCall call{Call(invocation)};
  return makeByFloat<Matmul>(call.dtype, call);
}

} // namespace ds::kernels
