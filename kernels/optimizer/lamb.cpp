// lamb: DeepSpeed's FusedLamb in two passes: moments and the norms of the parameter and its update, then the step. The
// sums are of pieces of one size, added in order, so that they do not depend on the number of workers.
#include "kernels/optimizer/gradients.h"
#include "kernels/optimizer/lamb_call.h"

#include <algorithm>
#include <vector>

namespace ds::kernels {

namespace {

constexpr int64_t lambLeaf = 64; // elements that are summed at once

/// The numbers of one update, in the tensors' type.
template <typename T> struct LambNumbers {
  T clip, beta1, oneMinusBeta1, beta2, oneMinusBeta2, epsilon, weightDecay;
};

struct LambSquares {
  double parameter = 0, update = 0;
};

} // namespace

} // namespace ds::kernels

#define DS_LOOPS "kernels/optimizer/lamb_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

constexpr int64_t grain = 16384;

template <typename T> class Lamb : public Kernel {
public:
  explicit Lamb(const LambCall &call) : call_(call), squares_(size_t(piecesOf(call.elements, grain))) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const int64_t step = *static_cast<const int64_t *>(operands[5]);
    if (Status status = checkStep("lamb", step); !status.ok())
      return status;
    const double clip = *static_cast<const double *>(operands[6]);
    if (clip == 0) // no update
      return Status::success();
    auto *p = static_cast<T *>(operands[0]), *m = static_cast<T *>(operands[2]), *v = static_cast<T *>(operands[3]);
    const double beta1 = beta1Of(call_, operands.back());
    const LambNumbers<T> numbers{.clip = T(clip),
                                 .beta1 = T(beta1),
                                 .oneMinusBeta1 = T(1 - beta1),
                                 .beta2 = T(call_.beta2),
                                 .oneMinusBeta2 = T(1 - call_.beta2),
                                 .epsilon = T(call_.epsilon),
                                 .weightDecay = T(call_.weightDecay)};
    const int64_t pieces = piecesOf(call_.elements, grain);
    parallelFor(context, pieces, [&](int64_t piece, int) {
      const int64_t begin = piece * grain;
      LambSquares &squares = squares_[size_t(piece)] = {};
      withGradients<T>(operands[1], call_.gradient, begin, std::min(grain, call_.elements - begin),
                       [&](int64_t first, int64_t count, const T *g) {
                         moments_(p + first, g, m + first, v + first, count, numbers, squares);
                       });
    });
    LambSquares all;
    for (const LambSquares &one : squares_) {
      all.parameter += one.parameter;
      all.update += one.update;
    }
    const double size =
        lambStepSize(call_.biasCorrection, *static_cast<const double *>(operands[4]), step, beta1, call_.beta2);
    const T distance = T(size * trustRatio(all.parameter, all.update, call_.minCoeff, call_.maxCoeff));
    parallelFor(context, pieces, [&](int64_t piece, int) {
      const int64_t first = piece * grain, count = std::min(grain, call_.elements - first);
      step_(p + first, m + first, v + first, count, distance, numbers);
    });
    return Status::success();
  }

private:
  LambCall call_;
  std::vector<LambSquares> squares_; // of each piece
  decltype(&baseline::lambMoments<T>) moments_ = DS_BEST(lambMoments<T>);
  decltype(&baseline::lambStep<T>) step_ = DS_BEST(lambStep<T>);
};

} // namespace

std::unique_ptr<Kernel> makeLamb(const Invocation &invocation, const BuildOptions &) {
  const LambCall call{Call(invocation)};
  return makeByFloat<Lamb>(call.dtype, call);
}

} // namespace ds::kernels
