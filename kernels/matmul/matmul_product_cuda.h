//===- matmul_product_cuda.h - one product of cuBLASLt --------------------===//
#pragma once

#include "kernels/Float8.h"
#include "kernels/cuda/CublasLt.h"
#include "kernels/matmul/matmul_call.h"
#include "kernels/matmul/matmul_cuda_plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::kernels::cuda {

cudaDataType_t cublasTypeOf(DType dtype);

/// What cuBLASLt does besides the product, and which addresses it needs for that.
struct ProductEpilogue {
  cublasLtEpilogue_t kind = CUBLASLT_EPILOGUE_DEFAULT;
  std::optional<DType> bias; ///< of the vector that is added, or of the sums that are written
  std::optional<DType> aux;

  bool isNone() const { return kind == CUBLASLT_EPILOGUE_DEFAULT; }
};

/// Factors of 8 bits: codes, each matrix or block with a scale. The call then has their numbers' type, float32.
struct ScaledFactors {
  Float8 a, b;
  Float8Block aBlock, bBlock;
};

/// A description, its layouts, and an algorithm: the call's, where it has one for this GPU and this cuBLASLt; else one
/// that cuBLASLt's heuristics choose within the workspace when the product is made. Sums that are split are added in a
/// fixed order, never by atomics. 16 and 8 bits are summed in float32; float32 is exact unless the call allows TF32.
class LtProduct {
public:
  /// `alignment`: of all addresses, those of bias and aux too, in bytes; below 16 the call's algorithm is none.
  /// hasAlgorithm() tells whether cuBLASLt can.
  LtProduct(const MatmulCall &call, const MatmulPlan &plan, DType cType, const ProductEpilogue &epilogue,
            uint32_t alignment, int64_t workspaceBytes, std::optional<ScaledFactors> scaled = {});

  bool hasAlgorithm() const { return algorithm_.has_value(); }
  /// As Kernel::algorithms says.
  std::vector<std::string> algorithms(int most) const;

  struct Addresses {
    const void *a = nullptr, *b = nullptr;
    void *c = nullptr;
    const void *bias = nullptr; ///< of the epilogue; sums are written there
    void *aux = nullptr;
    const void *aScale = nullptr, *bScale = nullptr; ///< of ScaledFactors
  };
  /// `workspace` is the call's, of which the product has `workspaceBytes`.
  Status enqueue(const Addresses &addresses, void *workspace, cudaStream_t stream) noexcept;

private:
  void describeScales(const ScaledFactors &scaled);
  void describeEpilogue(const ProductEpilogue &epilogue, const MatmulPlan &plan);
  cublasStatus_t setAddresses(const Addresses &addresses) noexcept;
  /// The first `most` of cuBLASLt's heuristics, best first.
  std::vector<cublasLtMatmulAlgo_t> heuristics(int most) const;
  /// The algorithm, if cuBLASLt here can run it within the workspace.
  std::optional<cublasLtMatmulAlgo_t> checked(const LibraryAlgorithm &wanted) const;

  cublasLtHandle_t handle_ = cublasLtHandle();
  LtDescription description_;
  LtLayout first_, second_, result_;
  std::optional<cublasLtMatmulAlgo_t> algorithm_;
  bool isDouble_, isScaled_, hasBias_ = false, hasAux_ = false;
  uint32_t alignment_;
  int64_t workspaceBytes_; ///< behind the alignment
};

} // namespace ds::kernels::cuda
