// adagrad: one fused pass over p, g and the sum of squares, torch.optim.Adagrad's single-tensor formula in the tensors'
// type.
#include "kernels/optimizer/adagrad_call.h"
#include "kernels/optimizer/gradients.h"

#include <algorithm>
#include <cmath>

#define DS_LOOPS "kernels/optimizer/adagrad_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

constexpr int64_t grain = 16384;

template <typename T> class Adagrad : public Kernel {
public:
  explicit Adagrad(const AdagradCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const int64_t step = *static_cast<const int64_t *>(operands[4]);
    if (Status status = checkStep("adagrad", step); !status.ok())
      return status;
    if (*static_cast<const double *>(operands[5]) == 0) // no update
      return Status::success();
    auto *p = static_cast<T *>(operands[0]), *sum = static_cast<T *>(operands[2]);
    const T minusRate = T(-call_.rate(*static_cast<const double *>(operands[3]), step));
    const T clip = T(*static_cast<const double *>(operands[5]));
    parallelFor(context, piecesOf(call_.elements, grain), [&](int64_t piece, int) {
      const int64_t begin = piece * grain;
      withGradients<T>(operands[1], call_.gradient, begin, std::min(grain, call_.elements - begin),
                       [&](int64_t first, int64_t count, const T *g) {
                         run_(p + first, g, sum + first, count, clip, T(call_.weightDecay), minusRate,
                              T(call_.epsilon));
                       });
    });
    return Status::success();
  }

private:
  AdagradCall call_;
  decltype(&baseline::adagradRun<T>) run_ = DS_BEST(adagradRun<T>);
};

} // namespace

std::unique_ptr<Kernel> makeAdagrad(const Invocation &invocation, const BuildOptions &) {
  const AdagradCall call{Call(invocation)};
  return makeByFloat<Adagrad>(call.dtype, call);
}

} // namespace ds::kernels
