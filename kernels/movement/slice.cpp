// slice: y[i] = x[starts + i * steps].
#include "kernels/movement/movement_call.h"
#include "kernels/movement/strided_copy.h"

namespace ds::kernels {

namespace {

class Slice : public Kernel {
public:
  explicit Slice(const SliceCall &call) : copy_(copyOf(call)) {
    const auto strides = rowMajorStrides(call.x);
    for (size_t d = 0; d < call.x.size() && elementCount(call.y) > 0; ++d)
      offsetBytes_ += call.starts[d] * strides[d] * call.elementBytes;
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    copy_.run(context, static_cast<const std::byte *>(operands[0]) + offsetBytes_,
              static_cast<std::byte *>(operands[1]));
    return Status::success();
  }

private:
  static StridedCopy copyOf(const SliceCall &call) {
    const auto from = rowMajorStrides(call.x), to = rowMajorStrides(call.y);
    std::vector<StridedCopy::Dimension> dimensions;
    for (size_t d = 0; d < call.y.size(); ++d) // a step that is never taken may be any number
      dimensions.push_back({call.y[d], call.y[d] > 1 ? from[d] * call.steps[d] : from[d], to[d]});
    return {std::move(dimensions), call.elementBytes};
  }

  StridedCopy copy_;
  int64_t offsetBytes_ = 0;
};

} // namespace

std::unique_ptr<Kernel> makeSlice(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<Slice>(SliceCall(Call(invocation)));
}

} // namespace ds::kernels
