// cross_entropy: loss = sum or mean of lse[row] - logits[row, label[row]], in float64.
#include "kernels/loss/cross_entropy_call.h"

#include <cmath>
#include <limits>

namespace ds::kernels {

namespace {

template <typename T> class CrossEntropyReference : public Kernel {
public:
  explicit CrossEntropyReference(const CrossEntropyCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto *logits = static_cast<const T *>(operands[0]);
    const auto *labels = static_cast<const int64_t *>(operands[1]);
    int64_t count = 0;
    if (Status status = call_.countLabels("cross_entropy", labels, count); !status.ok())
      return status;
    double total = 0;
    for (int64_t row = 0; row < call_.rows; ++row) {
      const T *x = logits + row * call_.columns;
      double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t c = 0; c < call_.classes; ++c)
        if (!(x[c] <= maximum))
          maximum = x[c];
      for (int64_t c = 0; c < call_.classes; ++c)
        sum += std::exp(x[c] - maximum);
      const double lse = maximum + std::log(sum);
      static_cast<T *>(operands[3])[row] = T(lse);
      if (labels[row] != call_.ignoreIndex)
        total += lse - x[labels[row]];
    }
    *static_cast<T *>(operands[2]) = T(call_.mean ? total / double(count) : total);
    return Status::success();
  }

private:
  CrossEntropyCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeCrossEntropyReference(const Invocation &invocation, const BuildOptions &) {
  const CrossEntropyCall call{Call(invocation)};
  return makeByFloat<CrossEntropyReference>(call.dtype, call);
}

} // namespace ds::kernels
