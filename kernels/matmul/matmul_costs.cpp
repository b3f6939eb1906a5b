#include "kernels/KernelTable.h"
#include "kernels/cpu/Scratch.h"
#include "kernels/cpu/TileBlocks.h"
#include "kernels/matmul/matmul_pieces.h"

#include <algorithm>

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

void foldBatches(MatmulCall &call) {
  const auto zero = [](int64_t stride) { return stride == 0; };
  bool whole = !call.transA && std::all_of(call.bBatchStrides.begin(), call.bBatchStrides.end(), zero);
  int64_t stride = 1;
  for (size_t d = call.batch.size(); d-- > 0;) {
    whole = whole && (call.aBatchStrides[d] == stride || call.batch[d] == 1);
    stride *= call.batch[d];
  }
  if (!whole)
    return;
  call.m *= call.batches;
  call.batches = 1;
  call.batch.clear();
}

} // namespace

MatmulPiece matmulPieceOf(MatmulCall &call) {
  foldBatches(call);
  const int64_t total = call.batches * call.m * call.n;
  const int64_t rounds = std::max<int64_t>(piecesOf(total, call.pieces * maxPieceElements), 1);
  const int64_t pieces = std::min(call.pieces * std::min(rounds, matmulMaxPieces), matmulMaxPieces);
  const Grid grid = chooseGrid(call.m, call.n, piecesOf(pieces, std::max<int64_t>(call.batches, 1)));
  return {std::max<int64_t>(piecesOf(call.m, grid.down), 1), std::max<int64_t>(piecesOf(call.n, grid.across), 1)};
}

/// What a worker packs for tile registers.
int64_t matmulWorkspace(const CallTypes &types, const WorkspaceLimits &limits) {
  if (types["a"].dtype != DType::F32)
    return 0;
  MatmulCall call{Call(types.invocation())};
  const MatmulPiece piece = matmulPieceOf(call);
  const int64_t bytes = tileScratchBytes(piece.rows, piece.cols, call.k);
  return WorkerScratch::bytesFor(std::min(bytes, limits.bytesPerWorker), limits.workers);
}

/// What cuBLASLt or cuDNN may use.
int64_t libraryWorkspace(const CallTypes &call, const WorkspaceLimits &limits) {
  return call.isEmpty() ? 0 : limits.bytesPerWorker;
}

/// Each element of c is as many products as op(a) has columns.
double matmulFlops(const CallTypes &call) {
  const auto m = double(call.dim("c", -2)), mk = double(call.dim("a", -2)) * double(call.dim("a", -1));
  return m == 0 ? 0 : 2 * double(call.elements("c")) * (mk / m);
}

} // namespace ds::kernels
