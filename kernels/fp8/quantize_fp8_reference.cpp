// quantize_fp8: element by element.
#include "kernels/fp8/fp8_call.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ds::kernels {

namespace {

class QuantizeFp8Reference final : public Kernel {
public:
  explicit QuantizeFp8Reference(const QuantizeFp8Call &call) : call_(call), largest_(size_t(call.scales.count())) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    using Operands = QuantizeFp8Call;
    const auto *x = static_cast<const float *>(operands[Operands::x]);
    const Float8Scales &scales = call_.scales;
    std::ranges::fill(largest_, 0.0F);
    forEach([&](int64_t line, int64_t place, int64_t at) {
      float &own = largest_[size_t(scales.at(line, place))];
      own = std::isfinite(x[at]) && !std::isnan(own) ? std::fmax(own, std::fabs(x[at])) : NAN;
    });
    for (size_t i = 0; i < largest_.size(); ++i)
      static_cast<float *>(operands[Operands::scale])[i] = float8Scale(call_.format, largest_[i]).scale;
    forEach([&](int64_t line, int64_t place, int64_t at) {
      const Float8Scale scale = float8Scale(call_.format, largest_[size_t(scales.at(line, place))]);
      static_cast<uint8_t *>(operands[Operands::q])[line * scales.depth + place] =
          float8Bits(call_.format, x[at] * scale.inverse);
    });
    return Status::success();
  }

private:
  /// visit(line and place of a code, place of its number in x)
  template <typename Visit> void forEach(Visit visit) const {
    for (int64_t row = 0; row < call_.rows; ++row)
      for (int64_t col = 0; col < call_.cols; ++col)
        visit(call_.transposed ? col : row, call_.transposed ? row : col, row * call_.cols + col);
  }

  QuantizeFp8Call call_;
  std::vector<float> largest_; ///< that each scale is made of
};

} // namespace

std::unique_ptr<Kernel> makeQuantizeFp8Reference(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<QuantizeFp8Reference>(QuantizeFp8Call(Call(invocation)));
}

} // namespace ds::kernels
