// pad: y is `value`, except y[low + i * (interior + 1)] = x[i]. The gradient of slice.
#include "kernels/movement/movement_call.h"
#include "kernels/movement/strided_copy.h"

#include <algorithm>
#include <cstring>

namespace ds::kernels {

namespace {

/// Elements filled in one piece.
constexpr int64_t grain = 32768;

class Pad : public Kernel {
public:
  explicit Pad(const PadCall &call) : call_(call), elements_(elementCount(call.y)), copy_(copyOf(call)) {
    const auto strides = rowMajorStrides(call.y);
    for (size_t d = 0; d < call.x.size() && elementCount(call.x) > 0; ++d)
      offsetBytes_ += call.low[d] * strides[d] * call.elementBytes;
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    auto *y = static_cast<std::byte *>(operands[1]);
    parallelFor(context, piecesOf(elements_, grain), [&](int64_t piece, int) {
      fill(y + piece * grain * call_.elementBytes, std::min(grain, elements_ - piece * grain));
    });
    copy_.run(context, static_cast<const std::byte *>(operands[0]), y + offsetBytes_);
    return Status::success();
  }

private:
  static StridedCopy copyOf(const PadCall &call) {
    const auto from = rowMajorStrides(call.x), to = rowMajorStrides(call.y);
    std::vector<StridedCopy::Dimension> dimensions;
    for (size_t d = 0; d < call.x.size(); ++d) // a spacing that is never used may be any number
      dimensions.push_back({call.x[d], from[d], call.x[d] > 1 ? to[d] * call.spacing[d] : to[d]});
    return {std::move(dimensions), call.elementBytes};
  }

  template <typename T> void fillAs(std::byte *y, int64_t count) const {
    T element;
    std::memcpy(&element, call_.value.data(), sizeof(T));
    std::fill_n(reinterpret_cast<T *>(y), count, element);
  }

  void fill(std::byte *y, int64_t count) const {
    switch (call_.elementBytes) {
    case 1:
      return fillAs<uint8_t>(y, count);
    case 2:
      return fillAs<uint16_t>(y, count);
    case 4:
      return fillAs<uint32_t>(y, count);
    default:
      return fillAs<uint64_t>(y, count);
    }
  }

  PadCall call_;
  int64_t elements_, offsetBytes_ = 0;
  StridedCopy copy_;
};

} // namespace

std::unique_ptr<Kernel> makePad(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<Pad>(PadCall(Call(invocation)));
}

} // namespace ds::kernels
