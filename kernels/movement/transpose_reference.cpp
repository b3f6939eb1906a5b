// transpose, element by element.
#include "kernels/movement/movement_call.h"

#include <cstring>

namespace ds::kernels {

namespace {

class TransposeReference : public Kernel {
public:
  explicit TransposeReference(const Call &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto *x = static_cast<const char *>(operands[0]);
    auto *y = static_cast<char *>(operands[1]);
    const auto strides = rowMajorStrides(call_.x);
    for (int64_t i = 0, count = elementCount(call_.y); i < count; ++i) {
      const auto index = unravel(i, call_.y);
      int64_t from = 0;
      for (size_t d = 0; d < call_.y.size(); ++d)
        from += index[d] * strides[size_t(call_.perm[d])];
      std::memcpy(y + i * call_.elementBytes, x + from * call_.elementBytes, size_t(call_.elementBytes));
    }
    return Status::success();
  }

private:
  TransposeCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeTransposeReference(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<TransposeReference>(Call(invocation));
}

} // namespace ds::kernels
