// cumsum: each result by itself, in long double.
#include "kernels/Numbers.h"
#include "kernels/index/search_call.h"

namespace ds::kernels {

namespace {

template <typename T> class CumSumReference : public Kernel {
public:
  explicit CumSumReference(const CumSumCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto [outer, length, inner] = call_.x;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t j = 0; j < length; ++j)
        for (int64_t i = 0; i < inner; ++i) {
          const T *x = static_cast<const T *>(operands[0]) + o * length * inner + i;
          long double sum = 0;
          for (int64_t k = 0; k < length; ++k)
            if (call_.reverse ? k > j : k < j)
              sum += (long double)(x[k * inner]);
          if (!call_.exclusive)
            sum += (long double)(x[j * inner]);
          static_cast<T *>(operands[1])[(o * length + j) * inner + i] = T(sum);
        }
    return Status::success();
  }

private:
  CumSumCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeCumSumReference(const Invocation &invocation, const BuildOptions &) {
  const CumSumCall call{Call(invocation)};
  return withType(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    return std::make_unique<CumSumReference<decltype(zero)>>(call);
  });
}

} // namespace ds::kernels
