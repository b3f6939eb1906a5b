// block_sum_squares: partials[b] = sum of g[i]^2 over block b of `block` elements, in float64.
#include "kernels/clip/block_sum_squares_call.h"

namespace ds::kernels {

namespace {

template <typename T> class BlockSumSquaresReference : public Kernel {
public:
  explicit BlockSumSquaresReference(const BlockSumSquaresCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto *g = static_cast<const T *>(operands[0]);
    auto *partials = static_cast<double *>(operands[1]);
    for (int64_t i = 0; i < call_.elements; ++i) {
      if (i % call_.block == 0)
        partials[i / call_.block] = 0;
      partials[i / call_.block] += double(g[i]) * double(g[i]);
    }
    return Status::success();
  }

private:
  BlockSumSquaresCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeBlockSumSquaresReference(const Invocation &invocation, const BuildOptions &) {
  const BlockSumSquaresCall call{Call(invocation)};
  return makeByFloat<BlockSumSquaresReference>(call.dtype, call);
}

} // namespace ds::kernels
