// dropout, element by element; a dropped element is 0 whatever it was.
#include "kernels/random/dropout_call.h"

namespace ds::kernels {

namespace {

template <typename T> class DropoutReference : public Kernel {
public:
  explicit DropoutReference(const DropoutCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *x = static_cast<const T *>(operands[0]);
    auto *y = static_cast<T *>(operands[1]);
    const uint64_t key = philoxStepKey(context.seed, context.step);
    for (int64_t i = 0; i < call_.elements; ++i) {
      const uint32_t word = philoxElement(key, uint32_t(context.microbatch), call_.opId, uint64_t(call_.numbers.at(i)));
      y[i] = word >= call_.threshold ? x[i] * T(call_.scale) : T(0);
    }
    return Status::success();
  }

private:
  DropoutCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeDropoutReference(const Invocation &invocation, const BuildOptions &) {
  const DropoutCall call{Call(invocation)};
  return makeByFloat<DropoutReference>(call.dtype, call);
}

} // namespace ds::kernels
