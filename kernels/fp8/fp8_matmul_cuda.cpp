// fp8_matmul by cuBLASLt, which has FP8 for a transposed first matrix alone (our b, matmul_cuda_plan.h), at multiples
// of 16 elements and bytes, and on compute capability 8.9 and newer; of blocks on 9.0 alone. Elsewhere a kernel of our
// own.
#include "kernels/cuda/Fallback.h"
#include "kernels/cuda/Launch.h"
#include "kernels/fp8/plain_fp8_matmul.h"
#include "kernels/matmul/matmul_product_cuda.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace ds::kernels::cuda {

namespace {

class Fp8Matmul final : public Kernel {
public:
  explicit Fp8Matmul(const Fp8MatmulCall &call) : call_(call) {
    const MatmulCall product{Call(call_.product(true))};
    const MatmulPlan plan(product);
    if (product.k == 0 || plan.launches.empty())
      return;
    const ProductEpilogue epilogue{call_.hasBias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT,
                                   call_.hasBias ? std::optional(call_.dtype) : std::nullopt,
                                   {}};
    product_.emplace(product, plan, call_.dtype, epilogue, alignment, call_.workspace.bytes,
                     ScaledFactors{call_.aFormat, call_.bFormat, call_.aScales.block, call_.bScales.block});
    isPlain_ = !product_->hasAlgorithm();
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    using Operands = Fp8MatmulCall;
    const bool isAligned = std::ranges::all_of(operands.first(call_.c + 1), [&](void *const &address) {
      const auto operand = size_t(&address - operands.data());
      const bool isScalar = !call_.isBlocked() && (operand == Operands::aScale || operand == Operands::bScale);
      return isScalar || reinterpret_cast<uintptr_t>(address) % alignment == 0;
    });
    if (!product_ || isPlain_ || !isAligned) {
      enqueuePlainFp8Matmul(call_, operands, streamOf(context));
      return launchStatus("fp8_matmul");
    }
    return product_->enqueue({.a = operands[Operands::a],
                              .b = operands[Operands::b],
                              .c = operands[call_.c],
                              .bias = call_.hasBias ? operands[Operands::bias] : nullptr,
                              .aScale = operands[Operands::aScale],
                              .bScale = operands[Operands::bScale]},
                             call_.workspace.at(operands), streamOf(context));
  }

  std::vector<std::string> algorithms(int most) const override {
    return product_ && !isPlain_ ? product_->algorithms(most) : std::vector<std::string>();
  }

  bool isPlain() const { return isPlain_; }

private:
  static constexpr uint32_t alignment = 16; // bytes

  Fp8MatmulCall call_;
  std::optional<LtProduct> product_; ///< none where c is empty or of no sums
  bool isPlain_ = false;
};

} // namespace

std::unique_ptr<Kernel> makeFp8Matmul(const Invocation &invocation, const BuildOptions &) {
  auto kernel = std::make_unique<Fp8Matmul>(Fp8MatmulCall(Call(invocation)));
  if (kernel->isPlain())
    fallBack(invocation, "cuBLASLt");
  return kernel;
}

} // namespace ds::kernels::cuda
