// pad: fill, then place x element by element.
#include "kernels/movement/movement_call.h"

#include <cstring>

namespace ds::kernels {

namespace {

class PadReference : public Kernel {
public:
  explicit PadReference(const Call &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto *x = static_cast<const char *>(operands[0]);
    auto *y = static_cast<char *>(operands[1]);
    const auto size = size_t(call_.elementBytes);
    for (int64_t i = 0, count = elementCount(call_.y); i < count; ++i)
      std::memcpy(y + i * call_.elementBytes, call_.value.data(), size);
    const auto strides = rowMajorStrides(call_.y);
    for (int64_t i = 0, count = elementCount(call_.x); i < count; ++i) {
      const auto index = unravel(i, call_.x);
      int64_t to = 0;
      for (size_t d = 0; d < call_.x.size(); ++d)
        to += (call_.low[d] + index[d] * call_.spacing[d]) * strides[d];
      std::memcpy(y + to * call_.elementBytes, x + i * call_.elementBytes, size);
    }
    return Status::success();
  }

private:
  PadCall call_;
};

} // namespace

std::unique_ptr<Kernel> makePadReference(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<PadReference>(Call(invocation));
}

} // namespace ds::kernels
