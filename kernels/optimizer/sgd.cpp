// sgd: one fused pass, torch.optim.SGD with dampening 0. The momentum buffer starts as the first gradient, so its
// contents before the first step do not matter.
#include "kernels/optimizer/gradients.h"
#include "kernels/optimizer/sgd_call.h"

#include <algorithm>

#define DS_LOOPS "kernels/optimizer/sgd_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

constexpr int64_t grain = 16384;

template <typename T> class Sgd : public Kernel {
public:
  explicit Sgd(const SgdCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const int64_t step = *static_cast<const int64_t *>(operands[call_.tensors + 1]);
    if (Status status = checkStep("sgd", step); !status.ok())
      return status;
    if (*static_cast<const double *>(operands[call_.tensors + 2]) == 0) // no update
      return Status::success();
    auto *p = static_cast<T *>(operands[0]);
    T *buffer = call_.momentum > 0 ? static_cast<T *>(operands[2]) : nullptr;
    const T minusLr = T(-*static_cast<const double *>(operands[call_.tensors]));
    const bool first = step == 0;
    const T clip = T(*static_cast<const double *>(operands[call_.tensors + 2])), decay = T(call_.weightDecay);
    parallelFor(context, piecesOf(call_.elements, grain), [&](int64_t piece, int) {
      const int64_t begin = piece * grain;
      withGradients<T>(operands[1], call_.gradient, begin, std::min(grain, call_.elements - begin),
                       [&](int64_t at, int64_t count, const T *g) {
                         if (buffer)
                           momentumRun_(p + at, g, buffer + at, count, clip, decay, minusLr, T(call_.momentum), first,
                                        call_.nesterov);
                         else
                           run_(p + at, g, count, clip, decay, minusLr);
                       });
    });
    return Status::success();
  }

private:
  SgdCall call_;
  decltype(&baseline::sgdRun<T>) run_ = DS_BEST(sgdRun<T>);
  decltype(&baseline::sgdMomentumRun<T>) momentumRun_ = DS_BEST(sgdMomentumRun<T>);
};

} // namespace

std::unique_ptr<Kernel> makeSgd(const Invocation &invocation, const BuildOptions &) {
  const SgdCall call{Call(invocation)};
  return makeByFloat<Sgd>(call.dtype, call);
}

} // namespace ds::kernels
