// softmax_grad: dx = y * (dy - sum(y * dy)); log_softmax_grad: dx = dy - exp(y) * sum(dy), sums along the axis.
#include "kernels/reduce/softmax_call.h"

#include <algorithm>

#define DS_LOOPS "kernels/reduce/softmax_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

/// Elements of one piece, roughly.
constexpr int64_t grain = 16384;

template <typename T> class SoftmaxGrad : public Kernel {
public:
  explicit SoftmaxGrad(const SoftmaxCall &call) : call_(call) {
    if (call.logarithm)
      row_ = DS_BEST(logSoftmaxGradRow<T>);
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *y = static_cast<const T *>(operands[0]), *dy = static_cast<const T *>(operands[1]);
    auto *dx = static_cast<T *>(operands[2]);
    const auto [outer, length, inner] = call_.view;
    if (outer == 0 || length == 0 || inner == 0)
      return Status::success();
    if (inner == 1)
      rows(context, y, dy, dx);
    else
      columns(context, y, dy, dx);
    return Status::success();
  }

private:
  void rows(const CallContext &context, const T *y, const T *dy, T *dx) const {
    const int64_t length = call_.view.length, rows = std::max<int64_t>(1, grain / length);
    parallelFor(context, piecesOf(call_.view.outer, rows), [&](int64_t piece, int) {
      for (int64_t row = piece * rows; row < std::min((piece + 1) * rows, call_.view.outer); ++row)
        row_(y + row * length, dy + row * length, dx + row * length, length);
    });
  }

  void columns(const CallContext &context, const T *y, const T *dy, T *dx) const {
    const auto [outer, length, inner] = call_.view;
    constexpr int64_t width = baseline::softmaxColumns;
    const int64_t blocks = piecesOf(inner, width);
    parallelFor(context, outer * blocks, [&](int64_t piece, int) {
      const int64_t first = piece % blocks * width, offset = piece / blocks * length * inner + first;
      down_(y + offset, dy + offset, dx + offset, length, inner, std::min(width, inner - first), call_.logarithm);
    });
  }

  SoftmaxCall call_;
  decltype(&baseline::softmaxGradRow<T>) row_ = DS_BEST(softmaxGradRow<T>);
  decltype(&baseline::softmaxGradDown<T>) down_ = DS_BEST(softmaxGradDown<T>);
};

} // namespace

std::unique_ptr<Kernel> makeSoftmaxGrad(const Invocation &invocation, const BuildOptions &) {
  const SoftmaxCall call(Call(invocation), invocation.kernel);
  return makeByFloat<SoftmaxGrad>(call.dtype, call);
}

} // namespace ds::kernels
