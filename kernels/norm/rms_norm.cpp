// rms_norm, per row of x [rows, cols]:  y = x / sqrt(mean(x^2) + epsilon) * gamma
// Writes y and rrms [rows], the factor. Sums in lanes of a fixed number. Zhang and Sennrich 2019;
// torch.nn.functional.rms_norm.
#include "kernels/norm/norm_factory.h"
#include "kernels/norm/rms_norm_call.h"

#include <algorithm>

#define DS_LOOPS "kernels/norm/rms_norm_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

/// Elements of one piece, roughly.
constexpr int64_t grain = 16384;

template <typename T> class RmsNorm : public Kernel {
public:
  explicit RmsNorm(const RmsNormCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *gamma = static_cast<const T *>(operands[1]);
    auto *y = static_cast<T *>(operands[call_.y]), *rrms = static_cast<T *>(operands[call_.y + 1]);
    const int64_t cols = call_.cols, rows = std::max<int64_t>(1, grain / std::max<int64_t>(cols, 1));
    parallelFor(context, piecesOf(call_.rows, rows), [&](int64_t piece, int) {
      for (int64_t row = piece * rows; row < std::min((piece + 1) * rows, call_.rows); ++row)
        row_(call_.normalizedRow<T>(operands, row), gamma, y + row * cols, rrms + row, cols, call_.epsilon);
    });
    return Status::success();
  }

private:
  RmsNormCall call_;
  decltype(&baseline::rmsNormRow<T>) row_ = DS_BEST(rmsNormRow<T>);
};

} // namespace

std::unique_ptr<Kernel> makeRmsNorm(const Invocation &invocation, const BuildOptions &options) {
  return makeNorm<RmsNorm, RmsNormCall>(invocation, options);
}

} // namespace ds::kernels
