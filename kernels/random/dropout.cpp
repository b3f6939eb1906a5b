// dropout: y = keep ? x / (1 - ratio) : 0, with keep drawn by Philox.h from (seed, step, micro-batch, op_id, element).
// A dropped element is 0 whatever it was. The mask depends neither on workers nor on how the tensor is cut.
#include "kernels/random/dropout_call.h"

#include <algorithm>

#define DS_LOOPS "kernels/random/dropout_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

template <typename T> class Dropout : public Kernel {
public:
  explicit Dropout(const DropoutCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *x = static_cast<const T *>(operands[0]);
    auto *y = static_cast<T *>(operands[1]);
    const uint64_t key = philoxStepKey(context.seed, context.step);
    forEachRun(context, call_.numbers, call_.elements, [&](int64_t first, int64_t count, uint64_t number) {
      if (call_.threshold == 0) // all kept
        std::copy_n(x + first, count, y + first);
      else if (call_.threshold > UINT32_MAX) // none
        std::fill_n(y + first, count, T(0));
      else
        run_(x + first, y + first, count, key, uint32_t(context.microbatch), call_.opId, number,
             uint32_t(call_.threshold - 1), T(call_.scale));
    });
    return Status::success();
  }

private:
  DropoutCall call_;
  decltype(&baseline::dropoutRun<T>) run_ = DS_BEST(dropoutRun<T>);
};

} // namespace

std::unique_ptr<Kernel> makeDropout(const Invocation &invocation, const BuildOptions &) {
  const DropoutCall call{Call(invocation)};
  return makeByFloat<Dropout>(call.dtype, call);
}

} // namespace ds::kernels
