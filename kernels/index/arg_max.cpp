// arg_max: the index of the largest element along one axis. Columns are searched side by side, a block of them at a
// time.
#include "kernels/Numbers.h"
#include "kernels/index/search_call.h"

#include <algorithm>

namespace ds::kernels {

namespace {

/// Columns of a block, and elements of x behind a piece, roughly.
constexpr int64_t width = 64, grain = 32768;

template <typename T> class ArgMax : public Kernel {
public:
  explicit ArgMax(const ArgMaxCall &call)
      : call_(call), blocks_(piecesOf(call.x.inner, width)),
        perPiece_(std::max<int64_t>(1, grain / (call.x.length * std::clamp<int64_t>(call.x.inner, 1, width)))) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *x = static_cast<const T *>(operands[0]);
    auto *y = static_cast<int64_t *>(operands[1]);
    const int64_t total = call_.x.outer * blocks_;
    parallelFor(context, piecesOf(total, perPiece_), [&](int64_t piece, int) {
      for (int64_t block = piece * perPiece_; block < std::min((piece + 1) * perPiece_, total); ++block)
        search(x, y, block / blocks_, block % blocks_ * width);
    });
    return Status::success();
  }

private:
  void search(const T *x, int64_t *y, int64_t outer, int64_t first) const {
    const auto [outers, length, inner] = call_.x;
    const int64_t count = std::min(width, inner - first);
    const T *row = x + outer * length * inner + first;
    int64_t *found = y + outer * inner + first;
    T best[width];
    std::copy_n(row, count, best);
    std::fill_n(found, count, 0);
    for (int64_t j = 1; j < length; ++j)
      for (int64_t c = 0; c < count; ++c) {
        const T element = row[j * inner + c];
        if (call_.last ? !isLarger(best[c], element) : isLarger(element, best[c])) {
          best[c] = element;
          found[c] = j;
        }
      }
  }

  ArgMaxCall call_;
  int64_t blocks_, perPiece_;
};

} // namespace

std::unique_ptr<Kernel> makeArgMax(const Invocation &invocation, const BuildOptions &) {
  const ArgMaxCall call{Call(invocation)};
  return withType(call.dtype,
                  [&](auto zero) -> std::unique_ptr<Kernel> { return std::make_unique<ArgMax<decltype(zero)>>(call); });
}

} // namespace ds::kernels
