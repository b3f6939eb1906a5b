// uniform, element by element.
#include "kernels/random/uniform_call.h"

namespace ds::kernels {

namespace {

template <typename T> class UniformReference : public Kernel {
public:
  explicit UniformReference(const UniformCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const uint64_t key = philoxStepKey(context.seed, context.step);
    for (int64_t i = 0; i < call_.elements; ++i) {
      const uint32_t word = philoxElement(key, uint32_t(context.microbatch), call_.opId, uint64_t(call_.numbers.at(i)));
      static_cast<T *>(operands[0])[i] = uniformOf<T>(word);
    }
    return Status::success();
  }

private:
  UniformCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeUniformReference(const Invocation &invocation, const BuildOptions &) {
  const UniformCall call{Call(invocation)};
  return makeByFloat<UniformReference>(call.dtype, call);
}

} // namespace ds::kernels
