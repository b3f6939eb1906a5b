// softmax and log_softmax along one axis: y = exp(x - max) / sum(exp(x - max)), or its logarithm.
// torch.nn.functional.softmax, log_softmax. Rows are independent; a row is summed in lanes of a fixed number.
#include "kernels/reduce/softmax_call.h"

#include <algorithm>

#define DS_LOOPS "kernels/reduce/softmax_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

/// Elements of one piece, roughly.
constexpr int64_t grain = 16384;

template <typename T> class Softmax : public Kernel {
public:
  explicit Softmax(const SoftmaxCall &call) : call_(call) {
    if (call.logarithm)
      row_ = DS_BEST(logSoftmaxRow<T>);
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *x = static_cast<const T *>(operands[0]);
    auto *y = static_cast<T *>(operands[1]);
    const auto [outer, length, inner] = call_.view;
    if (outer == 0 || length == 0 || inner == 0)
      return Status::success();
    if (inner == 1)
      rows(context, x, y);
    else
      columns(context, x, y);
    return Status::success();
  }

private:
  void rows(const CallContext &context, const T *x, T *y) const {
    const int64_t length = call_.view.length, rows = std::max<int64_t>(1, grain / length);
    parallelFor(context, piecesOf(call_.view.outer, rows), [&](int64_t piece, int) {
      for (int64_t row = piece * rows; row < std::min((piece + 1) * rows, call_.view.outer); ++row)
        row_(x + row * length, y + row * length, length);
    });
  }

  void columns(const CallContext &context, const T *x, T *y) const {
    const auto [outer, length, inner] = call_.view;
    constexpr int64_t width = baseline::softmaxColumns;
    const int64_t blocks = piecesOf(inner, width);
    parallelFor(context, outer * blocks, [&](int64_t piece, int) {
      const int64_t first = piece % blocks * width, offset = piece / blocks * length * inner + first;
      down_(x + offset, y + offset, length, inner, std::min(width, inner - first), call_.logarithm);
    });
  }

  SoftmaxCall call_;
  decltype(&baseline::softmaxRow<T>) row_ = DS_BEST(softmaxRow<T>);
  decltype(&baseline::softmaxDown<T>) down_ = DS_BEST(softmaxDown<T>);
};

} // namespace

std::unique_ptr<Kernel> makeSoftmax(const Invocation &invocation, const BuildOptions &) {
  const SoftmaxCall call(Call(invocation), invocation.kernel);
  return makeByFloat<Softmax>(call.dtype, call);
}

} // namespace ds::kernels
