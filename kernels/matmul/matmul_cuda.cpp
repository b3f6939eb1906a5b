// matmul by cuBLASLt: c[..., m, n] = op(a) op(b) + bias, with GELU and its gradient as epilogues where cuBLASLt has
// them for the types, else behind it (matmul_epilogue_cuda.h).
//
// Algorithms are chosen when the kernel is made, by the plan (`ds-run --tune`) or by cuBLASLt's heuristics within the
// workspace of the plan, once for operands at multiples of 16 bytes and once for any, and kept: so every step runs the
// same ones. Split sums are added
// in a fixed order, never by atomics. 16 bits are summed in float32; float32 is exact unless the call allows TF32.
#include "kernels/cuda/Fallback.h"
#include "kernels/cuda/Launch.h"
#include "kernels/matmul/matmul_epilogue_cuda.h"
#include "kernels/matmul/matmul_product_cuda.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace ds::kernels::cuda {

namespace {

/// The call's bias and epilogue.
ProductEpilogue epilogueOf(const MatmulCall &call, DType cType) {
  ProductEpilogue result;
  if (call.bias) // a bias of 16 bits of a float32 c is of no type that cuBLASLt has: it is added behind it
    result.bias = call.dtype;
  if (call.aux)
    result.aux = cType;
  if (call.epilogue == MatmulEpilogue::GeluTanh)
    result.kind = call.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  else if (call.epilogue == MatmulEpilogue::GeluTanhGrad)
    result.kind = CUBLASLT_EPILOGUE_DGELU;
  else if (call.bias)
    result.kind = CUBLASLT_EPILOGUE_BIAS;
  return result;
}

class Matmul final : public Kernel {
public:
  explicit Matmul(const Call &call) : call_(call), plan_(call_), cType_(call.dtype(call_.c)) {
    if (!isRun())
      return;
    for (size_t aligned : {0, 1})
      variants_[aligned] = makeVariant(aligned ? 16 : uint32_t(byteSize(call_.dtype)));
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const cudaStream_t stream = streamOf(context);
    Variant &variant = variants_[isAligned(operands)];
    if (Status status = enqueueProducts(variant, operands, stream); !status.ok())
      return status;
    if (!variant.fused)
      enqueueMatmulEpilogue(restOf(operands), stream);
    return launchStatus("matmul");
  }

  std::vector<std::string> algorithms(int most) const override {
    const std::optional<LtProduct> &aligned = variants_[1].product;
    return aligned ? aligned->algorithms(most) : std::vector<std::string>();
  }

  /// Whether cuBLASLt has no algorithm for aligned operands.
  bool isPlain() const { return isRun() && !variants_[1].product; }
  /// Whether GELU is a pass of its own behind cuBLASLt's product.
  bool isInParts() const { return isRun() && call_.epilogue != MatmulEpilogue::None && !variants_[1].fused; }

private:
  bool isRun() const { return plan_.k > 0 && !plan_.launches.empty(); }

  struct Variant {
    std::optional<LtProduct> product; ///< empty: the plain kernel
    bool fused = false;               ///< with bias and epilogue
  };

  Variant makeVariant(uint32_t alignment) const {
    Variant variant;
    for (bool fused : {true, false}) {
      variant.product.emplace(call_, plan_, cType_, fused ? epilogueOf(call_, cType_) : ProductEpilogue{}, alignment,
                              call_.workspace.bytes);
      variant.fused = fused;
      if (variant.product->hasAlgorithm())
        return variant;
    }
    variant.product.reset();
    return variant;
  }

  /// Whether every launch starts at multiples of 16 bytes in all of its matrices.
  bool isAligned(std::span<void *const> operands) const {
    for (size_t i = 0; i < call_.workspace.operand; ++i)
      if (reinterpret_cast<uintptr_t>(operands[i]) % 16 != 0)
        return false;
    const int64_t bytes = byteSize(call_.dtype), cBytes = byteSize(cType_);
    return std::ranges::all_of(plan_.launches, [&](const MatmulPlan::Start &start) {
      return start.a * bytes % 16 == 0 && start.b * bytes % 16 == 0 && start.c * cBytes % 16 == 0;
    });
  }

  Status enqueueProducts(Variant &variant, std::span<void *const> operands, cudaStream_t stream) noexcept {
    const auto byte = [](void *address, int64_t elements, DType dtype) {
      return address ? static_cast<std::byte *>(address) + elements * byteSize(dtype) : nullptr;
    };
    void *target = operands[variant.fused ? call_.c : call_.product()];
    if (plan_.k == 0 && plan_.rows() > 0)
      return cudaStatus(cudaMemsetAsync(target, 0, size_t(plan_.rows() * plan_.n * byteSize(cType_)), stream));
    for (const MatmulPlan::Start &start : plan_.launches) {
      if (!variant.product) {
        enqueuePlainProduct(plan_, start, call_.dtype, cType_, operands[0], operands[1], target, stream);
        continue;
      }
      const LtProduct::Addresses addresses{byte(operands[0], start.a, call_.dtype),
                                           byte(operands[1], start.b, call_.dtype), byte(target, start.c, cType_),
                                           call_.bias ? operands[2] : nullptr,
                                           call_.aux ? byte(operands[call_.aux], start.c, cType_) : nullptr};
      if (Status status = variant.product->enqueue(addresses, call_.workspace.at(operands), stream); !status.ok())
        return status;
    }
    return Status::success();
  }

  static Status cudaStatus(cudaError_t error) {
    return error == cudaSuccess ? Status::success() : Status::failure("kernel 'matmul': %s", cudaGetErrorString(error));
  }

  /// Bias and epilogue behind the product.
  MatmulEpilogueArguments restOf(std::span<void *const> operands) const {
    return {call_.epilogue,
            cType_,
            call_.dtype,
            plan_.rows(),
            plan_.n,
            operands[call_.product()],
            call_.bias ? operands[2] : nullptr,
            call_.aux ? operands[call_.aux] : nullptr,
            operands[call_.c]};
  }

  MatmulCall call_;
  MatmulPlan plan_;
  DType cType_;
  Variant variants_[2]; ///< for any addresses, for multiples of 16 bytes
};

} // namespace

std::unique_ptr<Kernel> makeMatmul(const Invocation &invocation, const BuildOptions &) {
  auto matmul = std::make_unique<Matmul>(Call(invocation));
  if (matmul->isPlain())
    fallBack(invocation, "cuBLASLt");
  else if (matmul->isInParts())
    fallBack(invocation, "cuBLASLt", "does not take GELU as it multiplies");
  return matmul;
}

} // namespace ds::kernels::cuda
