// lion: one fused pass over p, g and m in the tensors' type, DeepSpeed's FusedLion; where the direction is 0 or no
// number, its sign counts as 0, as in Chen et al., "Symbolic discovery of optimization algorithms", so that padding
// stays 0.
#include "kernels/optimizer/gradients.h"
#include "kernels/optimizer/lion_call.h"

#include <algorithm>

namespace ds::kernels {

namespace {

/// The numbers of one update, in the tensors' type.
template <typename T> struct LionNumbers {
  T clip, decay, lr, beta1, oneMinusBeta1, beta2, oneMinusBeta2;
};

} // namespace

} // namespace ds::kernels

#define DS_LOOPS "kernels/optimizer/lion_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

constexpr int64_t grain = 16384;

template <typename T> class Lion : public Kernel {
public:
  explicit Lion(const LionCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    if (Status status = checkStep("lion", *static_cast<const int64_t *>(operands[4])); !status.ok())
      return status;
    if (*static_cast<const double *>(operands[5]) == 0) // no update
      return Status::success();
    auto *p = static_cast<T *>(operands[0]), *m = static_cast<T *>(operands[2]);
    const double lr = *static_cast<const double *>(operands[3]), beta1 = beta1Of(call_, operands.back());
    const LionNumbers<T> numbers{.clip = T(*static_cast<const double *>(operands[5])),
                                 .decay = T(1 - lr * call_.weightDecay),
                                 .lr = T(lr),
                                 .beta1 = T(beta1),
                                 .oneMinusBeta1 = T(1 - beta1),
                                 .beta2 = T(call_.beta2),
                                 .oneMinusBeta2 = T(1 - call_.beta2)};
    parallelFor(context, piecesOf(call_.elements, grain), [&](int64_t piece, int) {
      const int64_t begin = piece * grain;
      withGradients<T>(
          operands[1], call_.gradient, begin, std::min(grain, call_.elements - begin),
          [&](int64_t first, int64_t count, const T *g) { run_(p + first, g, m + first, count, numbers); });
    });
    return Status::success();
  }

private:
  LionCall call_;
  decltype(&baseline::lionRun<T>) run_ = DS_BEST(lionRun<T>);
};

} // namespace

std::unique_ptr<Kernel> makeLion(const Invocation &invocation, const BuildOptions &) {
  const LionCall call{Call(invocation)};
  return makeByFloat<Lion>(call.dtype, call);
}

} // namespace ds::kernels
