// cross_entropy_grad: dlogits = (softmax(logits) - one_hot(label)) * dloss / (labels that count); ignored rows are 0.
// One pass over memory; dlogits may be the memory of logits.
#include "kernels/loss/cross_entropy_call.h"

#include <algorithm>

#define DS_LOOPS "kernels/loss/cross_entropy_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

/// Elements of one piece, roughly.
constexpr int64_t grain = 16384;

/// Of logits that are stored as `Stored`, as the gradient is, and computed with as T.
template <typename Stored, typename T> class CrossEntropyGrad : public Kernel {
public:
  explicit CrossEntropyGrad(const CrossEntropyCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *logits = static_cast<const Stored *>(operands[0]);
    const auto *labels = static_cast<const int64_t *>(operands[1]);
    const auto *lse = static_cast<const T *>(operands[2]);
    auto *dlogits = static_cast<Stored *>(operands[4]);
    int64_t count = 0;
    if (Status status = call_.countLabels("cross_entropy_grad", labels, count); !status.ok())
      return status;
    const T dloss = *static_cast<const T *>(operands[3]);
    const T scale = call_.mean ? T(dloss / T(count)) : dloss;
    const int64_t columns = call_.columns, classes = call_.classes,
                  rows = std::max<int64_t>(1, grain / std::max<int64_t>(classes, 1));
    parallelFor(context, piecesOf(call_.rows, rows), [&](int64_t piece, int) {
      for (int64_t row = piece * rows; row < std::min((piece + 1) * rows, call_.rows); ++row) {
        Stored *dx = dlogits + row * columns;
        if (labels[row] == call_.ignoreIndex) {
          std::fill_n(dx, columns, Stored(0));
          continue;
        }
        // The label's own entry from its exact difference to 1: softmax - 1 cancels when the model is sure.
        const T own = T(std::expm1(double(logits[row * columns + labels[row]]) - double(lse[row]))) * scale;
        softmax_(logits + row * columns, lse[row], scale, dx, classes);
        dx[labels[row]] = Stored(own);
        std::fill(dx + classes, dx + columns, Stored(0));
      }
    });
    return Status::success();
  }

private:
  CrossEntropyCall call_;
  void (*softmax_)(const Stored *, T, T, Stored *, int64_t) = DS_BEST(scaledSoftmax<Stored, T>);
};

} // namespace

std::unique_ptr<Kernel> makeCrossEntropyGrad(const Invocation &invocation, const BuildOptions &) {
  const CrossEntropyCall call{Call(invocation)};
  return makeByLogits<CrossEntropyGrad>(call);
}

} // namespace ds::kernels
