// scatter_elements, update by update in row-major order.
#include "kernels/Numbers.h"
#include "kernels/index/scatter_elements_call.h"

#include <algorithm>

namespace ds::kernels {

namespace {

template <typename T> class ScatterElementsReference : public Kernel {
public:
  explicit ScatterElementsReference(const ScatterElementsCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    if (Status status = call_.index.check("scatter_elements", operands[1]); !status.ok())
      return status;
    auto *y = static_cast<T *>(operands[3]);
    std::copy_n(static_cast<const T *>(operands[0]), elementCount(call_.data), y);
    for (int64_t i = 0; i < elementCount(call_.updates); ++i) {
      auto at = unravel(i, call_.updates);
      const int64_t index = indexAt(operands[1], call_.indexType, i);
      at[call_.axis] = index < 0 ? index + call_.data[call_.axis] : index;
      int64_t to = 0;
      for (size_t d = 0; d < call_.data.size(); ++d)
        to = to * call_.data[d] + at[d];
      y[to] = combined(call_.reduction, y[to], static_cast<const T *>(operands[2])[i]);
    }
    return Status::success();
  }

private:
  ScatterElementsCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeScatterElementsReference(const Invocation &invocation, const BuildOptions &) {
  const ScatterElementsCall call{Call(invocation)};
  return withType(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    return std::make_unique<ScatterElementsReference<decltype(zero)>>(call);
  });
}

} // namespace ds::kernels
