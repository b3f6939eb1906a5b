// block_sum_squares: partials[b] = sum of g[i]^2 over block b of `block` elements from the tensor's start, in float64.
// Blocks are fixed trees, so a norm that adds them in order is the same for every way of cutting or sharding the
// tensor.
#include "kernels/Numbers.h"
#include "kernels/clip/block_sum_squares_call.h"

#include <algorithm>

#define DS_LOOPS "kernels/clip/block_sum_squares_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

constexpr int64_t elementsPerPiece = 32 * sumSquaresBlock;

template <typename T> class BlockSumSquares : public Kernel {
public:
  explicit BlockSumSquares(const BlockSumSquaresCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *g = static_cast<const T *>(operands[0]);
    auto *partials = static_cast<double *>(operands[1]);
    const int64_t block = call_.block, blocks = piecesOf(call_.elements, block),
                  blocksPerPiece = elementsPerPiece / block;
    parallelFor(context, piecesOf(blocks, blocksPerPiece), [&](int64_t piece, int) {
      for (int64_t b = piece * blocksPerPiece; b < std::min((piece + 1) * blocksPerPiece, blocks); ++b)
        partials[b] = sum_(g + b * block, std::min(block, call_.elements - b * block), block);
    });
    return Status::success();
  }

private:
  BlockSumSquaresCall call_;
  decltype(&baseline::sumSquares<T>) sum_ = DS_BEST(sumSquares<T>);
};

} // namespace

std::unique_ptr<Kernel> makeBlockSumSquares(const Invocation &invocation, const BuildOptions &) {
  const BlockSumSquaresCall call{Call(invocation)};
  if (isNarrowFloat(call.dtype))
    return withNarrowFloat(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
      return std::make_unique<BlockSumSquares<decltype(zero)>>(call);
    });
  return makeByFloat<BlockSumSquares>(call.dtype, call);
}

} // namespace ds::kernels
