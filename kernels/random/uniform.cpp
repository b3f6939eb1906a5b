// uniform: numbers in [0, 1), drawn by Philox.h from (seed, step, micro-batch, op_id, element). They depend neither on
// workers nor on how the tensor is cut.
#include "kernels/random/uniform_call.h"

#define DS_LOOPS "kernels/random/uniform_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

template <typename T> class Uniform : public Kernel {
public:
  explicit Uniform(const UniformCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    auto *y = static_cast<T *>(operands[0]);
    const uint64_t key = philoxStepKey(context.seed, context.step);
    forEachRun(context, call_.numbers, call_.elements, [&](int64_t first, int64_t count, uint64_t number) {
      run_(y + first, count, key, uint32_t(context.microbatch), call_.opId, number);
    });
    return Status::success();
  }

private:
  UniformCall call_;
  decltype(&baseline::uniformRun<T>) run_ = DS_BEST(uniformRun<T>);
};

} // namespace

std::unique_ptr<Kernel> makeUniform(const Invocation &invocation, const BuildOptions &) {
  const UniformCall call{Call(invocation)};
  return makeByFloat<Uniform>(call.dtype, call);
}

} // namespace ds::kernels
