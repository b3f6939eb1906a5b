// matmul: c[..., m, n] = op(a)[..., m, k] op(b)[..., k, n] + bias, float32 and float64.
//
// c is cut into pieces by its shape and by the plan's `pieces`, and one worker computes a piece from start to end, so
// the bits do not depend on the workers of the run. In float32 a piece runs on tile registers or is one dnnl_sgemm,
// which is told to use one thread: of oneDNN's forms it is the fastest on a transformer's products (docs/kernels.md).
#include "kernels/cpu/Gemm.h"
#include "kernels/matmul/matmul_call.h"
#include "kernels/matmul/matmul_epilogue.h"
#include "kernels/matmul/matmul_pieces.h"

#include <algorithm>
#include <atomic>

namespace ds::kernels {

namespace {

template <typename T> class Matmul : public Kernel {
public:
  Matmul(const MatmulCall &call, int workers)
      : call_(call), piece_(matmulPieceOf(call_)), scratch_(call.workspace.bytes, workers) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *a = static_cast<const T *>(operands[0]), *b = static_cast<const T *>(operands[1]);
    const auto *bias = call_.bias ? static_cast<const T *>(operands[2]) : nullptr;
    T *c = static_cast<T *>(operands[call_.product()]);
    void *workspace = call_.workspace.at(operands);
    const int64_t down = piecesOf(call_.m, piece_.rows), across = piecesOf(call_.n, piece_.cols);
    std::atomic<bool> done = true;
    parallelFor(context, call_.batches * down * across, [&](int64_t piece, int worker) {
      const int64_t batch = piece / (down * across);
      // Neighbouring pieces share columns of b, which are mostly weights and more than a cache holds.
      if (!runPiece(a, b, bias, c, batch, piece % down * piece_.rows, piece / down % across * piece_.cols,
                    scratch_.of(workspace, worker)))
        done = false;
    });
    runMatmulEpilogue<T>(call_, context, operands);
    return done ? Status::success()
                : Status::failure("no memory was left for a product of [%lld, %lld] by [%lld, %lld]",
                                  (long long)call_.m, (long long)call_.k, (long long)call_.k, (long long)call_.n);
  }

private:
  bool runPiece(const T *a, const T *b, const T *bias, T *c, int64_t batch, int64_t row, int64_t col,
                Scratch scratch) const {
    const int64_t m = call_.m, n = call_.n, k = call_.k;
    const int64_t rows = std::min(piece_.rows, m - row), cols = std::min(piece_.cols, n - col);
    a += call_.matrixOf(call_.aBatchStrides, batch) * m * k + (call_.transA ? row : row * k);
    b += call_.matrixOf(call_.bBatchStrides, batch) * k * n + (call_.transB ? col * k : col);
    c += (batch * m + row) * n + col;
    const int64_t aStride = call_.transA ? m : k, bStride = call_.transB ? k : n;
    return multiply(Gemm<T>{a, b, c, rows, cols, k, aStride, bStride, n, call_.transA, call_.transB, /*add=*/false,
                            bias ? bias + col : nullptr},
                    scratch);
  }

  MatmulCall call_;
  MatmulPiece piece_;
  WorkerScratch scratch_;
};

} // namespace

std::unique_ptr<Kernel> makeMatmul(const Invocation &invocation, const BuildOptions &options) {
  const MatmulCall call{Call(invocation)};
  return makeByFloat<Matmul>(call.dtype, call, options.maxWorkers);
}

} // namespace ds::kernels
