// matmul of bfloat16 numbers: both operands are packed into the workspace, panel by panel, then each worker multiplies
// a panel of columns by some panels of rows. Sums are float32 and rounded once, behind the bias.
//
// The workspace is that of the float32 kernel, for a plan does not know where it is run: packed operands take half of
// what float32 copies would, unless they are mostly padding. A call by hand that brings less, as for Widened.cpp, gets
// memory of the kernel's own when it is made.
#include "kernels/matmul/matmul_bf16.h"

#include "kernels/BFloat16.h"
#include "kernels/WidenedCall.h"
#include "kernels/cpu/Bf16Gemm.h"
#include "kernels/cpu/Scratch.h"
#include "kernels/matmul/matmul_call.h"
#include "kernels/matmul/matmul_pieces.h"

#include <algorithm>
#include <vector>

namespace ds::kernels {

namespace {

/// Panels of rows that a worker multiplies by one panel of columns; 512 rows of depth 768 lie in a second-level cache.
constexpr int64_t panelsOfPiece = 16;

class Bf16Matmul : public Kernel {
public:
  Bf16Matmul(const MatmulCall &call, int64_t aElements, int64_t bElements, DType result)
      : call_(call), left_(call.m, call.k), right_(call.n, call.k), result_(result),
        aMatrices_(aElements / std::max<int64_t>(call.m * call.k, 1)),
        bMatrices_(bElements / std::max<int64_t>(call.n * call.k, 1)) {
    if (call.workspace.bytes < workspaceBytes())
      own_.resize(size_t(workspaceBytes()));
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    void *memory = own_.empty() ? call_.workspace.at(operands) : own_.data();
    auto *a = reinterpret_cast<uint16_t *>(WorkerScratch::aligned(memory));
    auto *b = a + aMatrices_ * left_.numbers();
    pack(context, true, {static_cast<const uint16_t *>(operands[0]), call_.transA ? call_.m : call_.k, !call_.transA},
         aMatrices_, a);
    pack(context, false, {static_cast<const uint16_t *>(operands[1]), call_.transB ? call_.k : call_.n, call_.transB},
         bMatrices_, b);
    const auto *bias = call_.bias ? static_cast<const BFloat16 *>(operands[2]) : nullptr;
    if (void *c = operands[call_.c]; result_ == DType::F32)
      multiply(context, a, b, bias, static_cast<float *>(c));
    else
      multiply(context, a, b, bias, static_cast<BFloat16 *>(c));
    return Status::success();
  }

  int64_t workspaceBytes() const {
    return WorkerScratch::bytesFor(2 * (aMatrices_ * left_.numbers() + bMatrices_ * right_.numbers()), 1);
  }

private:
  void pack(const CallContext &context, bool left, Bf16Stored from, int64_t matrices, uint16_t *to) const {
    const Bf16Panels &panels = left ? left_ : right_;
    const int64_t width = left ? call_.m : call_.n;
    parallelFor(context, matrices * panels.count, [&](int64_t piece, int) {
      const int64_t matrix = piece / panels.count, panel = piece % panels.count, first = panel * Bf16Panels::width;
      Bf16Stored corner = from;
      corner.data += matrix * width * call_.k + (from.alongDepth ? first * from.stride : first);
      packBf16(left, corner, width - first, call_.k, to + matrix * panels.numbers() + panels.offset(panel));
    });
  }

  template <typename T>
  void multiply(const CallContext &context, const uint16_t *a, const uint16_t *b, const BFloat16 *bias,
                T *c) const noexcept {
    const int64_t down = piecesOf(left_.count, panelsOfPiece);
    parallelFor(context, call_.batches * down * right_.count, [&](int64_t piece, int) {
      const int64_t batch = piece / (down * right_.count), col = piece % right_.count;
      const int64_t firstRow = piece / right_.count % down * panelsOfPiece;
      const uint16_t *rows = a + call_.matrixOf(call_.aBatchStrides, batch) * left_.numbers();
      const uint16_t *cols = b + call_.matrixOf(call_.bBatchStrides, batch) * right_.numbers() + right_.offset(col);
      const Bf16Unit unit;
      alignas(64) float sums[Bf16Panels::width * Bf16Panels::width];
      for (int64_t row = firstRow; row < std::min(firstRow + panelsOfPiece, left_.count); ++row) {
        unit.multiply(rows + left_.offset(row), cols, left_.steps, sums);
        writeOut(sums, row * Bf16Panels::width, col * Bf16Panels::width, bias, c + batch * call_.m * call_.n);
      }
    });
  }

  template <typename T> void writeOut(const float *sums, int64_t row, int64_t col, const BFloat16 *bias, T *c) const {
    constexpr int64_t width = Bf16Panels::width;
    const int64_t rows = std::min(width, call_.m - row), cols = std::min(width, call_.n - col);
    float added[width] = {};
    if (bias)
      std::copy_n(bias + col, cols, added);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        c[(row + i) * call_.n + col + j] = T(sums[i * width + j] + added[j]);
  }

  MatmulCall call_;
  Bf16Panels left_, right_;
  DType result_;
  int64_t aMatrices_, bMatrices_;
  std::vector<std::byte> own_; ///< empty where the workspace has room
};

} // namespace

std::unique_ptr<Kernel> makeBf16Matmul(const Invocation &invocation, const BuildOptions &) {
  MatmulCall call{Call(invocation)};
  if (!hasBf16Units() || call.dtype != DType::BF16 || call.epilogue != MatmulEpilogue::None)
    return nullptr;
  matmulPieceOf(call); // folds batches that are one product
  auto kernel =
      std::make_unique<Bf16Matmul>(call, elementCount(invocation.operands[0].shape),
                                   elementCount(invocation.operands[1].shape), invocation.operands[call.c].dtype);
  const bool pays = kernel->workspaceBytes() <= WidenedCall(invocation).bytes; // by shape alone, and so the bits
  return pays ? std::move(kernel) : nullptr;
}

} // namespace ds::kernels
