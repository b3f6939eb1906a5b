// Misuses of cuBLASLt that its stand-in refuses; that it computes is what the tests of matmul say.
#include "test/shim/Machine.h"
#include "test/shim/cublasLt.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

/// d [4, 8] = a [4, 16] b [16, 8], by columns, described as it should be; tests change one thing.
struct Product {
  cudaDataType_t type = CUDA_R_16BF, dType = CUDA_R_16BF, biasType = CUDA_R_16BF, scale = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  int64_t aLeading = 8, depthOfB = 16, auxLeading = 8;
  int32_t batchesOfB = 1, batches = 1;
  size_t biasBytes = 16, aBytes = 256, workspaceBytes = 4096, givenWorkspace = 4096;
  uint32_t alignment = 16;
  size_t offset = 0; ///< of a, in bytes
  int algorithm = 0; ///< of the heuristics'
  cublasOperation_t opOfA = CUBLAS_OP_N, opOfB = CUBLAS_OP_N;
  size_t biasOffset = 0, auxOffset = 0; ///< in bytes, of the product; the heuristics see none
  int64_t cLeading = 8;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  uint64_t word = 0; ///< added to a word of it that says nothing

  /// "": computed; else by whom it was refused.
  std::string run() const {
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t a, b, c, d;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulDescCreate(&op, compute, scale);
    if (opOfA == CUBLAS_OP_N)
      cublasLtMatrixLayoutCreate(&a, type, 8, 16, aLeading);
    else
      cublasLtMatrixLayoutCreate(&a, type, 16, 8, 16);
    if (opOfB == CUBLAS_OP_N)
      cublasLtMatrixLayoutCreate(&b, type, uint64_t(depthOfB), 4, depthOfB);
    else
      cublasLtMatrixLayoutCreate(&b, type, 4, uint64_t(depthOfB), 4);
    cublasLtMatrixLayoutCreate(&c, dType, 8, 4, cLeading);
    cublasLtMatrixLayoutCreate(&d, dType, 8, 4, 8);
    cublasLtMatmulPreferenceCreate(&preference);
    const auto setBatches = [](cublasLtMatrixLayout_t layout, int32_t count) {
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    };
    setBatches(a, batches);
    setBatches(b, batchesOfB);
    setBatches(c, batches);
    setBatches(d, batches);
    std::byte *bias = shim::allocate(biasBytes + biasOffset, biasBytes + biasOffset),
              *aux = shim::allocate(256 + auxOffset, 256 + auxOffset);
    cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA, &opOfA, sizeof opOfA);
    cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSB, &opOfB, sizeof opOfB);
    const auto kind = int32_t(biasType);
    cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &kind, sizeof kind);
    cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
    cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &auxLeading, sizeof auxLeading);
    const uint64_t most = workspaceBytes;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    for (auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      cublasLtMatmulPreferenceSetAttribute(preference, name, &alignment, sizeof alignment);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                         sizeof reductions);
    cublasLtMatmulHeuristicResult_t all[8], checked;
    int count = 0;
    std::string refused;
    if (cublasLtMatmulAlgoGetHeuristic(nullptr, op, a, b, d, d, preference, 8, all, &count) != CUBLAS_STATUS_SUCCESS)
      refused = "no algorithm";
    else {
      cublasLtMatmulAlgo_t &chosen = all[algorithm].algo;
      chosen.data[7] += word;
      if (cublasLtMatmulAlgoCheck(nullptr, op, a, b, d, d, &chosen, &checked) != CUBLAS_STATUS_SUCCESS)
        refused = "unknown; ";
      bias += biasOffset;
      aux += auxOffset;
      cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
      cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
      std::byte *left = shim::allocate(aBytes + 16, aBytes), *right = shim::allocate(1024, 1024),
                *result = shim::allocate(1024, 1024), *workspace = shim::allocate(4096, givenWorkspace);
      const float one = 1, zero = 0;
      const cublasStatus_t status = cublasLtMatmul(nullptr, op, &one, left + offset, a, right, b, &zero, result, c,
                                                   result, d, &chosen, workspace, givenWorkspace, nullptr);
      refused += status == CUBLAS_STATUS_SUCCESS ? "" : cublasLtGetStatusString(status);
    }
    shim::releaseAll();
    cublasLtMatmulDescDestroy(op);
    for (cublasLtMatrixLayout_t layout : {a, b, c, d})
      cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulPreferenceDestroy(preference);
    return refused;
  }
};

constexpr char outside[] = "a matrix, vector or workspace lies outside of every operand",
               misfit[] = "an argument does not fit the description", none[] = "no algorithm";

TEST(FakeCublasLt, RefusesMisuse) {
  EXPECT_EQ(Product().run(), "");
  const auto bias = CUBLASLT_EPILOGUE_BIAS;
  EXPECT_EQ((Product{.epilogue = bias}.run()), "");
  EXPECT_EQ((Product{.dType = CUDA_R_32F, .epilogue = bias}.run()), none); // its bias would have to be float32
  EXPECT_EQ((Product{.dType = CUDA_R_32F, .biasType = CUDA_R_32F, .epilogue = bias, .biasBytes = 16}.run()), outside);
  EXPECT_EQ((Product{.dType = CUDA_R_32F, .biasType = CUDA_R_32F, .epilogue = bias, .biasBytes = 32}.run()), "");
  EXPECT_EQ((Product{.scale = CUDA_R_64F}.run()), none);
  constexpr cudaDataType_t half = CUDA_R_16F;
  EXPECT_EQ((Product{.type = half, .dType = half, .biasType = half, .epilogue = bias}.run()), "");
  EXPECT_EQ(
      (Product{.type = half, .dType = CUDA_R_32F, .biasType = CUDA_R_32F, .epilogue = bias, .biasBytes = 32}.run()),
      "");
  EXPECT_EQ((Product{.type = half}.run()), none); // of which d would be bfloat16
  EXPECT_EQ((Product{.type = half, .dType = half, .epilogue = bias}.run()), none);
  EXPECT_EQ((Product{.compute = CUBLAS_COMPUTE_32F_FAST_TF32}.run()), none); // of bfloat16
  EXPECT_EQ((Product{.aLeading = 7}.run()), none);
  EXPECT_EQ((Product{.aLeading = 9}.run()), outside);
  EXPECT_EQ((Product{.depthOfB = 15}.run()), none);
  EXPECT_EQ((Product{.batchesOfB = 2}.run()), none);
  EXPECT_EQ((Product{.aBytes = 254}.run()), outside);
  EXPECT_EQ((Product{.givenWorkspace = 2048}.run()), misfit);
  EXPECT_EQ((Product{.offset = 2}.run()), misfit);
  EXPECT_EQ((Product{.epilogue = CUBLASLT_EPILOGUE_GELU_AUX}.run()), "");
  EXPECT_EQ((Product{.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, .auxLeading = 12}.run()), none);
  EXPECT_EQ((Product{.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, .alignment = 2}.run()), none);
  EXPECT_EQ((Product{.epilogue = CUBLASLT_EPILOGUE_DGELU_BGRAD, .batchesOfB = 2, .batches = 2}.run()), none);
  EXPECT_EQ((Product{.algorithm = 2}.run()), "");
  EXPECT_EQ((Product{.algorithm = 1, .word = 1}.run()), std::string("unknown; ") + misfit);
  const auto ofA = CUBLASLT_EPILOGUE_BGRADA, ofB = CUBLASLT_EPILOGUE_BGRADB;
  EXPECT_EQ((Product{.epilogue = ofA}.run()), "");
  EXPECT_EQ((Product{.epilogue = ofB, .biasBytes = 8, .opOfB = CUBLAS_OP_T}.run()), ""); // d has four columns
  EXPECT_EQ((Product{.epilogue = ofB, .biasBytes = 8}.run()), none);
  EXPECT_EQ((Product{.epilogue = ofA, .opOfA = CUBLAS_OP_T}.run()), none);
  EXPECT_EQ((Product{.epilogue = bias, .biasOffset = 2}.run()), misfit);
  // Addresses of aux are multiples of 16 bytes.
  EXPECT_EQ((Product{.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, .auxOffset = 8}.run()), "not supported");
  EXPECT_EQ((Product{.cLeading = 16}.run()), misfit); // in place, of two layouts
  EXPECT_EQ((Product{.epilogue = ofA, .biasBytes = 8}.run()), outside);
  EXPECT_EQ((Product{.biasType = CUDA_R_32F, .epilogue = ofB}.run()), none); // of a bfloat16 d
  EXPECT_EQ((Product{.epilogue = ofA, .batchesOfB = 2, .batches = 2}.run()), none);
}

} // namespace
