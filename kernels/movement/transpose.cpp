// transpose: dimension d of y is dimension perm[d] of x. numpy.transpose, torch.permute.
#include "kernels/movement/movement_call.h"
#include "kernels/movement/strided_copy.h"

namespace ds::kernels {

namespace {

StridedCopy copyOf(const TransposeCall &call) {
  const auto from = rowMajorStrides(call.x), to = rowMajorStrides(call.y);
  std::vector<StridedCopy::Dimension> dimensions;
  for (size_t d = 0; d < call.y.size(); ++d)
    dimensions.push_back({call.y[d], from[size_t(call.perm[d])], to[d]});
  return {std::move(dimensions), call.elementBytes};
}

class Transpose : public Kernel {
public:
  explicit Transpose(const TransposeCall &call) : copy_(copyOf(call)) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    copy_.run(context, static_cast<const std::byte *>(operands[0]), static_cast<std::byte *>(operands[1]));
    return Status::success();
  }

private:
  StridedCopy copy_;
};

} // namespace

std::unique_ptr<Kernel> makeTranspose(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<Transpose>(TransposeCall(Call(invocation)));
}

} // namespace ds::kernels
