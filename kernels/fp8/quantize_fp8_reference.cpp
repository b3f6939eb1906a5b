// quantize_fp8: element by element.
#include "kernels/fp8/fp8_call.h"

#include <cmath>

namespace ds::kernels {

namespace {

class QuantizeFp8Reference final : public Kernel {
public:
  explicit QuantizeFp8Reference(const QuantizeFp8Call &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    using Operands = QuantizeFp8Call;
    const auto *x = static_cast<const float *>(operands[Operands::x]);
    float largest = 0;
    for (int64_t i = 0; i < call_.elements(); ++i)
      largest = std::isfinite(x[i]) && !std::isnan(largest) ? std::fmax(largest, std::fabs(x[i])) : NAN;
    const Float8Scale scale = float8Scale(call_.format, largest);
    *static_cast<float *>(operands[Operands::scale]) = scale.scale;
    for (int64_t row = 0; row < call_.rows; ++row)
      for (int64_t col = 0; col < call_.cols; ++col)
        static_cast<uint8_t *>(
            operands[Operands::q])[call_.transposed ? col * call_.rows + row : row * call_.cols + col] =
            float8Bits(call_.format, x[row * call_.cols + col] * scale.inverse);
    return Status::success();
  }

private:
  QuantizeFp8Call call_;
};

} // namespace

std::unique_ptr<Kernel> makeQuantizeFp8Reference(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<QuantizeFp8Reference>(QuantizeFp8Call(Call(invocation)));
}

} // namespace ds::kernels
