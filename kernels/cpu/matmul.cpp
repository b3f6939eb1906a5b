// matmul: c[..., m, n] = op(a)[..., m, k] op(b)[..., k, n] + bias, float32 and float64.
//
// c is cut into pieces by its shape alone, and one worker computes a piece from start to end, so the bits do not depend
// on the number of workers. In float32 a piece is one dnnl_sgemm, which is told to use one thread: of oneDNN's forms it
// is the fastest on a transformer's products (docs/kernels.md).
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/Factories.h"
#include "kernels/cpu/Gemm.h"

#include <algorithm>
#include <atomic>

namespace ds::kernels {

namespace {

/// The largest piece of c. oneDNN's tile is 48 columns wide for AVX-512; above this size it gains 3 % and pieces get
/// few.
constexpr int64_t maxPieceRows = 256, maxPieceCols = 768;

template <typename T> class Matmul : public Kernel {
public:
  explicit Matmul(const MatmulCall &call) : call_(call) {
    foldBatches();
    pieceRows_ = evenPiece(call_.m, maxPieceRows);
    pieceCols_ = evenPiece(call_.n, maxPieceCols);
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *a = static_cast<const T *>(operands[0]), *b = static_cast<const T *>(operands[1]);
    const auto *bias = call_.bias ? static_cast<const T *>(operands[2]) : nullptr;
    T *c = static_cast<T *>(operands[call_.c]);
    const int64_t down = piecesOf(call_.m, pieceRows_), across = piecesOf(call_.n, pieceCols_);
    std::atomic<bool> done = true;
    parallelFor(context, call_.batches * down * across, [&](int64_t piece, int) {
      const int64_t batch = piece / (down * across);
      // Neighbouring pieces share columns of b, which are mostly weights and more than a cache holds.
      if (!runPiece(a, b, bias, c, batch, piece % down * pieceRows_, piece / down % across * pieceCols_))
        done = false;
    });
    return done ? Status::success()
                : Status::failure("oneDNN had no memory for a product of [%lld, %lld] by [%lld, %lld]",
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

  /// As few pieces as possible, of sizes that differ little.
  static int64_t evenPiece(int64_t total, int64_t largest) {
    return total == 0 ? 1 : piecesOf(total, piecesOf(total, largest));
  }

  bool runPiece(const T *a, const T *b, const T *bias, T *c, int64_t batch, int64_t row, int64_t col) const {
    const int64_t m = call_.m, n = call_.n, k = call_.k;
    const int64_t rows = std::min(pieceRows_, m - row), cols = std::min(pieceCols_, n - col);
    a += call_.matrixOf(call_.aBatchStrides, batch) * m * k + (call_.transA ? row : row * k);
    b += call_.matrixOf(call_.bBatchStrides, batch) * k * n + (call_.transB ? col * k : col);
    c += (batch * m + row) * n + col;
    for (int64_t i = 0; i < rows && bias; ++i)
      std::copy_n(bias + col, cols, c + i * n);
    for (int64_t i = 0; i < rows && !bias && k == 0; ++i)
      std::fill_n(c + i * n, cols, T(0));
    const int64_t aStride = call_.transA ? m : k, bStride = call_.transB ? k : n;
    return k == 0 ||
           multiply(Gemm<T>{a, b, c, rows, cols, k, aStride, bStride, n, call_.transA, call_.transB, bias != nullptr});
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
