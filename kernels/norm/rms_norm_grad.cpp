// rms_norm_grad, with h = dy * gamma:  dx = rrms * (h - x * rrms^2 * mean(h * x)),  dgamma = sum over rows of dy * x *
// rrms, and residual added to dx. Each piece of normGradRowsPerPiece rows adds up its own dgamma in the workspace; the
// pieces are then added in order, so the bits do not depend on the number of workers.
#include "kernels/norm/rms_norm_call.h"

#include <algorithm>

#define DS_LOOPS "kernels/norm/rms_norm_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

/// Columns of one piece of the last sum.
constexpr int64_t columnGrain = 128;

template <typename T> class RmsNormGrad : public Kernel {
public:
  explicit RmsNormGrad(const RmsNormGradCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const int64_t cols = call_.cols;
    auto *partial = static_cast<T *>(call_.workspace.at(operands)); // [pieces, cols]
    parallelFor(context, call_.pieces(), [&](int64_t piece, int) { addRows(operands, piece, partial + piece * cols); });
    const auto column = [&](int64_t col) { return partial ? partial + col : nullptr; }; // no rows: no workspace
    parallelFor(context, piecesOf(cols, columnGrain), [&](int64_t piece, int) {
      const int64_t first = piece * columnGrain, count = std::min(columnGrain, cols - first);
      addPieces_(column(first), call_.pieces(), cols, static_cast<T *>(operands[call_.dx + 1]) + first, count);
    });
    return Status::success();
  }

private:
  void addRows(std::span<void *const> operands, int64_t piece, T *dgamma) const {
    const auto *dy = static_cast<const T *>(operands[0]), *x = static_cast<const T *>(operands[1]);
    const auto *gamma = static_cast<const T *>(operands[2]), *rrms = static_cast<const T *>(operands[3]);
    const auto *residual = call_.residual ? static_cast<const T *>(operands[call_.residual]) : nullptr;
    auto *dx = static_cast<T *>(operands[call_.dx]);
    const int64_t cols = call_.cols, first = piece * normGradRowsPerPiece;
    std::fill_n(dgamma, cols, T(0));
    for (int64_t row = first; row < std::min(first + normGradRowsPerPiece, call_.rows); ++row)
      row_(dy + row * cols, x + row * cols, gamma, rrms[row], residual ? residual + row * cols : nullptr,
           dx + row * cols, dgamma, cols);
  }

  RmsNormGradCall call_;
  decltype(&baseline::rmsNormGradRow<T>) row_ = DS_BEST(rmsNormGradRow<T>);
  decltype(&baseline::addPieces<T>) addPieces_ = DS_BEST(addPieces<T>);
};

} // namespace

std::unique_ptr<Kernel> makeRmsNormGrad(const Invocation &invocation, const BuildOptions &) {
  const RmsNormGradCall call{Call(invocation)};
  return makeByFloat<RmsNormGrad>(call.dtype, call);
}

} // namespace ds::kernels
