// layer_norm, per row of x [rows, cols]:  y = (x - mean) / sqrt(var + epsilon) * gamma + beta
// Writes y, mean [rows], rstd [rows]. Sums in lanes of a fixed number. Ba et al. 2016; torch.nn.functional.layer_norm.
#include "kernels/norm/layer_norm_call.h"
#include "kernels/norm/norm_factory.h"

#include <algorithm>

#define DS_LOOPS "kernels/norm/layer_norm_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

/// Elements of one piece, roughly.
constexpr int64_t grain = 16384;

template <typename T> class LayerNorm : public Kernel {
public:
  explicit LayerNorm(const LayerNormCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *gamma = static_cast<const T *>(operands[1]), *beta = static_cast<const T *>(operands[2]);
    auto *y = static_cast<T *>(operands[call_.y]), *mean = static_cast<T *>(operands[call_.y + 1]);
    auto *rstd = static_cast<T *>(operands[call_.y + 2]);
    const int64_t cols = call_.cols, rows = std::max<int64_t>(1, grain / std::max<int64_t>(cols, 1));
    parallelFor(context, piecesOf(call_.rows, rows), [&](int64_t piece, int) {
      for (int64_t row = piece * rows; row < std::min((piece + 1) * rows, call_.rows); ++row)
        row_(call_.normalizedRow<T>(operands, row), gamma, beta, y + row * cols, mean + row, rstd + row, cols,
             call_.epsilon);
    });
    return Status::success();
  }

private:
  LayerNormCall call_;
  decltype(&baseline::layerNormRow<T>) row_ = DS_BEST(layerNormRow<T>);
};

} // namespace

std::unique_ptr<Kernel> makeLayerNorm(const Invocation &invocation, const BuildOptions &options) {
  return makeNorm<LayerNorm, LayerNormCall>(invocation, options);
}

} // namespace ds::kernels
