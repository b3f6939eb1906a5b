// arg_max, one result at a time.
#include "kernels/Numbers.h"
#include "kernels/index/search_call.h"

namespace ds::kernels {

namespace {

template <typename T> class ArgMaxReference : public Kernel {
public:
  explicit ArgMaxReference(const ArgMaxCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto [outer, length, inner] = call_.x;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const T *x = static_cast<const T *>(operands[0]) + o * length * inner + i;
        int64_t best = 0;
        for (int64_t j = 1; j < length; ++j) {
          const T now = x[j * inner], before = x[best * inner];
          const bool tie = !isLarger(now, before) && !isLarger(before, now);
          if (isLarger(now, before) || (tie && call_.last))
            best = j;
        }
        static_cast<int64_t *>(operands[1])[o * inner + i] = best;
      }
    return Status::success();
  }

private:
  ArgMaxCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeArgMaxReference(const Invocation &invocation, const BuildOptions &) {
  const ArgMaxCall call{Call(invocation)};
  return withType(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    return std::make_unique<ArgMaxReference<decltype(zero)>>(call);
  });
}

} // namespace ds::kernels
