// top_k: the k first of each row in order. A heap of the k best seen so far grows in the result itself, its worst at
// the root, and is sorted at the end: no memory beside the result, length * log k comparisons.
#include "kernels/Numbers.h"
#include "kernels/index/search_call.h"

#include <algorithm>
#include <numeric>

namespace ds::kernels {

namespace {

/// Elements of x behind a piece, roughly.
constexpr int64_t grain = 8192;

template <typename T> class TopK : public Kernel {
public:
  explicit TopK(const TopKCall &call)
      : call_(call), perPiece_(std::max<int64_t>(1, grain / std::max<int64_t>(call.length, 1))) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    parallelFor(context, piecesOf(call_.rows, perPiece_), [&](int64_t piece, int) {
      for (int64_t r = piece * perPiece_; r < std::min((piece + 1) * perPiece_, call_.rows); ++r)
        selectRow(static_cast<const T *>(operands[0]) + r * call_.length, static_cast<T *>(operands[1]) + r * call_.k,
                  static_cast<int64_t *>(operands[2]) + r * call_.k);
    });
    return Status::success();
  }

private:
  void selectRow(const T *x, T *values, int64_t *indices) const {
    const auto before = [&](int64_t a, int64_t b) { return call_.before(x, a, b); };
    int64_t *end = indices + call_.k;
    std::iota(indices, end, 0);
    std::make_heap(indices, end, before);
    for (int64_t i = call_.k; i < call_.length; ++i)
      if (before(i, indices[0])) {
        std::pop_heap(indices, end, before);
        end[-1] = i;
        std::push_heap(indices, end, before);
      }
    std::sort_heap(indices, end, before);
    for (int64_t j = 0; j < call_.k; ++j)
      values[j] = x[indices[j]];
  }

  TopKCall call_;
  int64_t perPiece_;
};

} // namespace

std::unique_ptr<Kernel> makeTopK(const Invocation &invocation, const BuildOptions &) {
  const TopKCall call{Call(invocation)};
  return withType(call.dtype,
                  [&](auto zero) -> std::unique_ptr<Kernel> { return std::make_unique<TopK<decltype(zero)>>(call); });
}

} // namespace ds::kernels
