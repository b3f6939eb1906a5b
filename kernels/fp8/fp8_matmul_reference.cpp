// fp8_matmul: three loops, in float64.
#include "kernels/fp8/fp8_call.h"

namespace ds::kernels {

namespace {

class Fp8MatmulReference final : public Kernel {
public:
  explicit Fp8MatmulReference(const Fp8MatmulCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    using Operands = Fp8MatmulCall;
    const auto *a = static_cast<const uint8_t *>(operands[Operands::a]);
    const auto *b = static_cast<const uint8_t *>(operands[Operands::b]);
    const auto *aScale = static_cast<const float *>(operands[Operands::aScale]),
               *bScale = static_cast<const float *>(operands[Operands::bScale]);
    for (int64_t i = 0; i < call_.m; ++i)
      for (int64_t j = 0; j < call_.n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < call_.k; ++l)
          sum += double(float8Value(call_.aFormat, a[i * call_.k + l])) * double(aScale[call_.aScales.at(i, l)]) *
                 double(float8Value(call_.bFormat, b[j * call_.k + l])) * double(bScale[call_.bScales.at(j, l)]);
        if (call_.hasBias)
          sum += double(static_cast<const float *>(operands[Operands::bias])[j]);
        static_cast<float *>(operands[call_.c])[i * call_.n + j] = float(sum);
      }
    return Status::success();
  }

private:
  Fp8MatmulCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeFp8MatmulReference(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<Fp8MatmulReference>(Fp8MatmulCall(Call(invocation)));
}

} // namespace ds::kernels
