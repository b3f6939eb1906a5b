// cumsum: running sums along one axis, added in order in float64 or 64-bit integers, columns side by side.
#include "kernels/Numbers.h"
#include "kernels/index/search_call.h"

#include <algorithm>

namespace ds::kernels {

namespace {

/// Columns of a block, and elements behind a piece, roughly.
constexpr int64_t width = 64, grain = 32768;

template <typename T> class CumSum : public Kernel {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

public:
  explicit CumSum(const CumSumCall &call)
      : call_(call), blocks_(piecesOf(call.x.inner, width)),
        perPiece_(std::max<int64_t>(
            1, grain / (std::max<int64_t>(call.x.length, 1) * std::clamp<int64_t>(call.x.inner, 1, width)))) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *x = static_cast<const T *>(operands[0]);
    auto *y = static_cast<T *>(operands[1]);
    const int64_t total = call_.x.outer * blocks_;
    parallelFor(context, piecesOf(total, perPiece_), [&](int64_t piece, int) {
      for (int64_t block = piece * perPiece_; block < std::min((piece + 1) * perPiece_, total); ++block)
        add(x, y, block / blocks_, block % blocks_ * width);
    });
    return Status::success();
  }

private:
  void add(const T *x, T *y, int64_t outer, int64_t first) const {
    const auto [outers, length, inner] = call_.x;
    const int64_t count = std::min(width, inner - first), begin = outer * length * inner + first;
    Sum sums[width] = {};
    for (int64_t j = 0; j < length; ++j) {
      const int64_t at = begin + (call_.reverse ? length - 1 - j : j) * inner;
      for (int64_t c = 0; c < count; ++c) {
        const Sum before = sums[c];
        sums[c] += Sum(x[at + c]);
        y[at + c] = T(call_.exclusive ? before : sums[c]);
      }
    }
  }

  CumSumCall call_;
  int64_t blocks_, perPiece_;
};

} // namespace

std::unique_ptr<Kernel> makeCumSum(const Invocation &invocation, const BuildOptions &) {
  const CumSumCall call{Call(invocation)};
  return withType(call.dtype,
                  [&](auto zero) -> std::unique_ptr<Kernel> { return std::make_unique<CumSum<decltype(zero)>>(call); });
}

} // namespace ds::kernels
