// cross_entropy_grad: dlogits = (softmax(logits) - one_hot(label)) * dloss / (labels that count); ignored rows are 0.
#include "kernels/loss/cross_entropy_call.h"

#include <cmath>

namespace ds::kernels {

namespace {

template <typename T> class CrossEntropyGradReference : public Kernel {
public:
  explicit CrossEntropyGradReference(const CrossEntropyCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto *logits = static_cast<const T *>(operands[0]);
    const auto *labels = static_cast<const int64_t *>(operands[1]);
    const auto *lse = static_cast<const T *>(operands[2]);
    auto *dlogits = static_cast<T *>(operands[4]);
    int64_t count = 0;
    if (Status status = call_.countLabels("cross_entropy_grad", labels, count); !status.ok())
      return status;
    const double scale = *static_cast<const T *>(operands[3]) / (call_.mean ? double(count) : 1.0);
    for (int64_t row = 0; row < call_.rows; ++row)
      for (int64_t c = 0; c < call_.columns; ++c) {
        const int64_t i = row * call_.columns + c;
        const double softmax = std::exp(double(logits[i]) - lse[row]);
        const bool counts = labels[row] != call_.ignoreIndex && c < call_.classes;
        dlogits[i] = counts ? T((softmax - (labels[row] == c)) * scale) : T(0);
      }
    return Status::success();
  }

private:
  CrossEntropyCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeCrossEntropyGradReference(const Invocation &invocation, const BuildOptions &) {
  const CrossEntropyCall call{Call(invocation)};
  return makeByFloat<CrossEntropyGradReference>(call.dtype, call);
}

} // namespace ds::kernels
