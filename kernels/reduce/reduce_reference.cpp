// reduce_sum, reduce_mean, reduce_max, one output at a time, in long double (so that the order of a float64
// sum does not show).
#include "kernels/Numbers.h"
#include "kernels/reduce/reduce_call.h"

#include <limits>

namespace ds::kernels {

namespace {

template <typename T> class ReduceReference : public Kernel {
public:
  explicit ReduceReference(const ReduceCall &call) : call_(call) {
    for (size_t d = 0; d < call.x.size(); ++d)
      (call.reduced[d] ? reducedShape_ : keptShape_).push_back(call.x[d]);
  }

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto *x = static_cast<const T *>(operands[0]);
    for (int64_t o = 0; o < call_.outputs; ++o) {
      long double value = call_.reduction == Reduction::Max ? -std::numeric_limits<long double>::infinity() : 0;
      for (int64_t k = 0; k < call_.length; ++k) {
        const long double element = x[position(o, k)];
        if (call_.reduction != Reduction::Max)
          value += element;
        else if (!(element <= value)) // NaN wins
          value = value != value ? value : element;
      }
      static_cast<T *>(operands[1])[o] =
          T(call_.reduction == Reduction::Mean ? value / (long double)(call_.length) : value);
    }
    return Status::success();
  }

private:
  /// Where element k of output o stands in x.
  int64_t position(int64_t o, int64_t k) const {
    const auto kept = unravel(o, keptShape_), reduced = unravel(k, reducedShape_);
    int64_t position = 0;
    for (size_t d = 0, nextKept = 0, nextReduced = 0; d < call_.x.size(); ++d)
      position = position * call_.x[d] + (call_.reduced[d] ? reduced[nextReduced++] : kept[nextKept++]);
    return position;
  }

  ReduceCall call_;
  Shape keptShape_, reducedShape_;
};

} // namespace

std::unique_ptr<Kernel> makeReduceReference(const Invocation &invocation, const BuildOptions &) {
  const ReduceCall call(Call(invocation), reductionNamed(invocation.kernel));
  return withType(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    return std::make_unique<ReduceReference<decltype(zero)>>(call);
  });
}

} // namespace ds::kernels
