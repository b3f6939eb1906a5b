// reduce_sum and reduce_max of integers: sums wrap, so their order does not matter.
#include "kernels/reduce/reduce_integer.h"
#include "kernels/reduce/reduce_call.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace ds::kernels {

namespace {

/// Elements of x behind one piece, roughly.
constexpr int64_t grain = 32768;

template <typename T> class IntegerReduce : public Kernel {
public:
  explicit IntegerReduce(const ReduceCall &call) : call_(call), dimensions_(call) {
    if (!dimensions_.reduced.empty()) {
      inner_ = dimensions_.reduced.back();
      dimensions_.reduced.pop_back();
    }
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *x = static_cast<const T *>(operands[0]);
    auto *y = static_cast<T *>(operands[1]);
    const int64_t perPiece = std::max<int64_t>(1, grain / std::max<int64_t>(call_.length, 1));
    parallelFor(context, piecesOf(call_.outputs, perPiece), [&](int64_t piece, int) {
      for (int64_t o = piece * perPiece; o < std::min((piece + 1) * perPiece, call_.outputs); ++o)
        y[o] = call_.length == 0 ? T(0) : reduced(x + offsetOf(dimensions_.kept, o));
    });
    return Status::success();
  }

private:
  T reduced(const T *x) const {
    const bool isMax = call_.reduction == Reduction::Max;
    uint64_t sum = 0;
    T most = std::numeric_limits<T>::min();
    for (int64_t r = 0; r < countOf(dimensions_.reduced); ++r) {
      const T *run = x + offsetOf(dimensions_.reduced, r);
      for (int64_t i = 0; i < inner_.size; ++i) {
        const T element = run[i * inner_.stride];
        sum += uint64_t(element);
        most = std::max(most, element);
      }
    }
    return isMax ? most : T(sum);
  }

  ReduceCall call_;
  ReduceDimensions dimensions_; ///< without what is below
  StridedDimension inner_{1, 0};
};

} // namespace

std::unique_ptr<Kernel> makeIntegerReduce(const ReduceCall &call) {
  if (call.dtype == DType::I32)
    return std::make_unique<IntegerReduce<int32_t>>(call);
  return std::make_unique<IntegerReduce<int64_t>>(call);
}

} // namespace ds::kernels
