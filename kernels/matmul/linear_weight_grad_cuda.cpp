// linear_weight_grad by cuBLASLt: the product for dw, which sums dy's columns as it reads them (BGRADA, BGRADB). Where
// cuBLASLt has no algorithm for both, the kernels of the parts run one after the other.
#include "kernels/cuda/Fallback.h"
#include "kernels/cuda/Launch.h"
#include "kernels/matmul/linear_weight_grad_parts.h"
#include "kernels/matmul/matmul_product_cuda.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace ds::kernels::cuda {

std::unique_ptr<Kernel> makeMatmul(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeReduce(const Invocation &, const BuildOptions &);

namespace {

class LinearWeightGrad final : public Kernel {
public:
  LinearWeightGrad(const Invocation &invocation, const BuildOptions &options) : call_(Call(invocation)) {
    const MatmulCall product{Call(call_.product)};
    const MatmulPlan plan(product);
    const DType dwType = invocation.operands[LinearWeightGradCall::dw].dtype;
    if (product.k > 0 && !plan.launches.empty())
      for (size_t aligned : {0, 1})
        fused_[aligned].emplace(product, plan, dwType, epilogue(dwType),
                                aligned ? 16 : uint32_t(byteSize(product.dtype)), call_.workspace.bytes);
    const auto isMissing = [](const auto &variant) { return !variant || !variant->hasAlgorithm(); };
    if (std::ranges::any_of(fused_, isMissing))
      parts_.emplace(call_, makeMatmul, makeReduce, options);
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    using Parts = LinearWeightGradCall;
    const bool aligned = std::ranges::all_of(
        operands.first(Parts::db + 1), [](void *address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; });
    std::optional<LtProduct> &fused = fused_[aligned];
    if (!fused || !fused->hasAlgorithm())
      return parts_->execute(context, operands);
    return fused->enqueue({operands[call_.a()], operands[call_.b()], operands[Parts::dw], operands[Parts::db]},
                          call_.workspace.at(operands), streamOf(context));
  }

  std::vector<std::string> algorithms(int most) const override {
    return fused_[1] && fused_[1]->hasAlgorithm() ? fused_[1]->algorithms(most) : std::vector<std::string>();
  }

  /// Whether two kernels run for aligned operands of a product that is not empty.
  bool isInParts() const { return fused_[1] && !fused_[1]->hasAlgorithm(); }

private:
  /// cuBLASLt's first matrix is our second (matmul_cuda_plan.h).
  ProductEpilogue epilogue(DType type) const {
    return {call_.transposed ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_BGRADA, type, {}};
  }

  LinearWeightGradCall call_;
  std::optional<LtProduct> fused_[2]; ///< for any addresses, for multiples of 16 bytes
  std::optional<LinearWeightGradParts> parts_;
};

} // namespace

std::unique_ptr<Kernel> makeLinearWeightGrad(const Invocation &invocation, const BuildOptions &options) {
  auto kernel = std::make_unique<LinearWeightGrad>(invocation, options);
  if (kernel->isInParts())
    fallBack(invocation, "cuBLASLt", "does not add up the columns of dy as it multiplies");
  return kernel;
}

} // namespace ds::kernels::cuda
