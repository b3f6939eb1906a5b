// cross_entropy: lse[row] = log sum exp of logits [rows, classes]; loss = sum or mean of lse[row] - logits[row, label].
// torch.nn.functional.cross_entropy with class indices: ignored labels count nowhere, and a mean of none is NaN.
#include "kernels/loss/cross_entropy_call.h"

#include <algorithm>

#define DS_LOOPS "kernels/loss/cross_entropy_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

/// Elements of one piece, roughly.
constexpr int64_t grain = 16384;

/// Of logits that are stored as `Stored` and computed with as T.
template <typename Stored, typename T> class CrossEntropy : public Kernel {
public:
  explicit CrossEntropy(const CrossEntropyCall &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *logits = static_cast<const Stored *>(operands[0]);
    const auto *labels = static_cast<const int64_t *>(operands[1]);
    auto *lse = static_cast<T *>(operands[3]);
    int64_t count = 0;
    if (Status status = call_.countLabels("cross_entropy", labels, count); !status.ok())
      return status;
    const int64_t columns = call_.columns, classes = call_.classes,
                  rows = std::max<int64_t>(1, grain / std::max<int64_t>(classes, 1));
    parallelFor(context, piecesOf(call_.rows, rows), [&](int64_t piece, int) {
      for (int64_t row = piece * rows; row < std::min((piece + 1) * rows, call_.rows); ++row)
        lse[row] = T(logSumExp_(logits + row * columns, classes));
    });
    double total = 0;
    for (int64_t row = 0; row < call_.rows; ++row)
      if (labels[row] != call_.ignoreIndex)
        total += double(lse[row]) - double(logits[row * columns + labels[row]]);
    *static_cast<T *>(operands[2]) = T(call_.mean ? total / double(count) : total);
    return Status::success();
  }

private:
  CrossEntropyCall call_;
  double (*logSumExp_)(const Stored *, int64_t) = DS_BEST(logSumExp<Stored, T>);
};

} // namespace

std::unique_ptr<Kernel> makeCrossEntropy(const Invocation &invocation, const BuildOptions &) {
  const CrossEntropyCall call{Call(invocation)};
  return makeByLogits<CrossEntropy>(call);
}

} // namespace ds::kernels
