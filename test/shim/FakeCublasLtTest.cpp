// Misuses of cuBLASLt that its stand-in refuses; that it computes is what the tests of matmul say.
#include "kernels/BFloat16.h"
#include "kernels/Float8.h"
#include "test/shim/Machine.h"
#include "test/shim/cublasLt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
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
    else if (algorithm >= count) {
      refused = "too few algorithms";
    } else {
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
  EXPECT_EQ((Product{.algorithm = 3}.run()), "too few algorithms"); // which keeps sums in d's type: not asked for
  EXPECT_EQ((Product{.algorithm = 3, .reductions = 7}.run()), "");
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

/// d [n, m] = b [n, k] a [m, k]^T of numbers of 8 bits, by columns, as cuBLASLt wants it on Hopper; tests change one
/// thing.
struct Fp8Product {
  cudaDataType_t aType = CUDA_R_8F_E4M3, bType = CUDA_R_8F_E4M3, dType = CUDA_R_16BF, biasType = CUDA_R_16BF;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  cublasOperation_t opOfA = CUBLAS_OP_T, opOfB = CUBLAS_OP_N;
  uint64_t m = 16, n = 32, k = 48;
  uint32_t alignment = 16;
  size_t offset = 0; ///< of a, in bytes
  bool hasScales = true, scalesAreOnDevice = true;
  cublasLtMatmulMatrixScale_t aMode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
                              bMode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  size_t scaleCount = 1, scaleOffset = 0; ///< floats

  /// The first number of d, where all of a are 1 and all of b are 1.5; -1: no algorithm, -2: refused.
  float run() const {
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulDescCreate(&op, compute, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&a, aType, opOfA == CUBLAS_OP_T ? k : m, opOfA == CUBLAS_OP_T ? m : k,
                               int64_t(opOfA == CUBLAS_OP_T ? k : m));
    cublasLtMatrixLayoutCreate(&b, bType, opOfB == CUBLAS_OP_T ? n : k, opOfB == CUBLAS_OP_T ? k : n,
                               int64_t(opOfB == CUBLAS_OP_T ? n : k));
    cublasLtMatrixLayoutCreate(&d, dType, m, n, int64_t(m));
    cublasLtMatmulPreferenceCreate(&preference);
    for (auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      cublasLtMatmulPreferenceSetAttribute(preference, name, &alignment, sizeof alignment);
    const auto set = [&](cublasLtMatmulDescAttributes_t name, auto value) {
      cublasLtMatmulDescSetAttribute(op, name, &value, sizeof value);
    };
    const auto fill = [](size_t count, uint8_t code) {
      std::byte *codes = shim::allocate(count + 16, count + 16);
      std::fill_n(codes, count + 16, std::byte(code));
      return codes;
    };
    const auto codeOf = [](cudaDataType_t type, float x) {
      using ds::kernels::Float8;
      return ds::kernels::float8Bits(type == CUDA_R_8F_E4M3 ? Float8::E4M3 : Float8::E5M2, x);
    };
    std::byte *left = fill(2 * m * k, codeOf(aType, 1)), *right = fill(2 * n * k, codeOf(bType, 1.5F));
    auto *result = reinterpret_cast<float *>(shim::allocate(m * n * 4, m * n * 4)), *bias = result;
    float onHost = 2, *scale = &onHost;
    if (scalesAreOnDevice) {
      const size_t bytes = (scaleCount + scaleOffset) * sizeof(float);
      scale = reinterpret_cast<float *>(shim::allocate(bytes, bytes)) + scaleOffset;
      for (size_t i = 0; i < scaleCount; ++i)
        scale[i] = float(2 + i);
    }
    set(CUBLASLT_MATMUL_DESC_TRANSA, opOfA);
    set(CUBLASLT_MATMUL_DESC_TRANSB, opOfB);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t(biasType));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, aMode);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, bMode);
    if (hasScales) {
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scale);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scale);
    }
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    float first = -1;
    if (cublasLtMatmulAlgoGetHeuristic(nullptr, op, a, b, d, d, preference, 1, &found, &count) ==
        CUBLAS_STATUS_SUCCESS) {
      const float one = 1, zero = 0;
      const cublasStatus_t status = cublasLtMatmul(nullptr, op, &one, left + offset, a, right, b, &zero, result, d,
                                                   result, d, &found.algo, nullptr, 0, nullptr);
      first = status != CUBLAS_STATUS_SUCCESS ? -2
              : dType == CUDA_R_32F           ? *result
                                              : float(*reinterpret_cast<ds::BFloat16 *>(result));
    }
    shim::releaseAll();
    cublasLtMatmulDescDestroy(op);
    for (cublasLtMatrixLayout_t layout : {a, b, d})
      cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulPreferenceDestroy(preference);
    return first;
  }
};

TEST(FakeCublasLt, Fp8AsNvidiasTablesHaveIt) {
  EXPECT_EQ(Fp8Product().run(), 48 * 1.5F * 4); // both scales are 2
  EXPECT_EQ((Fp8Product{.dType = CUDA_R_32F}.run()), 288);
  EXPECT_EQ((Fp8Product{.aType = CUDA_R_8F_E5M2}.run()), 288);
  EXPECT_EQ((Fp8Product{.bType = CUDA_R_8F_E5M2}.run()), 288);
  EXPECT_EQ((Fp8Product{.hasScales = false}.run()), 72); // 1 each
  constexpr float none = -1, refused = -2;
  EXPECT_EQ((Fp8Product{.aType = CUDA_R_8F_E5M2, .bType = CUDA_R_8F_E5M2}.run()), none);
  EXPECT_EQ((Fp8Product{.bType = CUDA_R_16BF}.run()), none);
  EXPECT_EQ((Fp8Product{.aType = CUDA_R_16BF, .bType = CUDA_R_16BF}.run()), refused); // they have no scales
  EXPECT_GT((Fp8Product{.aType = CUDA_R_16BF, .bType = CUDA_R_16BF, .hasScales = false}.run()), 0);
  EXPECT_EQ((Fp8Product{.dType = CUDA_R_64F}.run()), none);
  EXPECT_EQ((Fp8Product{.compute = CUBLAS_COMPUTE_32F_FAST_TF32}.run()), none);
  EXPECT_EQ((Fp8Product{.opOfA = CUBLAS_OP_N}.run()), none);
  EXPECT_EQ((Fp8Product{.opOfB = CUBLAS_OP_T}.run()), none);
  EXPECT_EQ((Fp8Product{.m = 24}.run()), none);
  EXPECT_EQ((Fp8Product{.n = 8}.run()), none);
  EXPECT_EQ((Fp8Product{.k = 40}.run()), none);
  EXPECT_EQ((Fp8Product{.alignment = 8}.run()), none);
  EXPECT_EQ((Fp8Product{.offset = 8}.run()), refused);
  EXPECT_EQ((Fp8Product{.scalesAreOnDevice = false}.run()), refused);
  EXPECT_EQ((Fp8Product{.biasType = CUDA_R_32F, .epilogue = CUBLASLT_EPILOGUE_BIAS}.run()), none);
  EXPECT_EQ((Fp8Product{.epilogue = CUBLASLT_EPILOGUE_GELU_AUX}.run()), none); // not asked for, so not there
}

/// The page's "128-element 1D and 128x128 2D Block Scaling": n is 32 and k 144, so both factors have two blocks along
/// k.
TEST(FakeCublasLt, ScalesOfBlocksAsNvidiasPageHasThem) {
  constexpr auto vector = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F, square = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
  constexpr float none = -1, refused = -2;
  const auto product = [&](auto aMode, auto bMode) {
    return Fp8Product{
        .dType = CUDA_R_32F, .m = 16, .n = 32, .k = 144, .aMode = aMode, .bMode = bMode, .scaleCount = 64};
  };
  // Scales are 2, 3, 4, ... in memory. Of vectors the second block's first line is behind all lines of the first.
  EXPECT_EQ(product(vector, vector).run(), 1.5F * (128 * 2 * 2 + 16 * 18 * 34));
  EXPECT_EQ(product(vector, square).run(), 1.5F * (128 * 2 * 2 + 16 * 18 * 3)); // squares': beside the first
  EXPECT_EQ(product(square, vector).run(), 1.5F * (128 * 2 * 2 + 16 * 3 * 34));
  EXPECT_EQ(product(square, square).run(), none);
  EXPECT_EQ(product(vector, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F).run(), none);
  EXPECT_EQ(product(vector, cublasLtMatmulMatrixScale_t(2)).run(), none); // 32 with UE8M0: of compute capability 10.0
  const auto changed = [&](auto change) {
    Fp8Product one = product(vector, square);
    change(one);
    return one.run();
  };
  EXPECT_EQ(changed([](Fp8Product &p) { p.hasScales = false; }), none);
  EXPECT_EQ(changed([](Fp8Product &p) { p.scaleOffset = 1; }), refused);
  EXPECT_EQ(changed([](Fp8Product &p) { p.scaleCount = 31; }), refused); // of a's 32
  EXPECT_GT(changed([](Fp8Product &p) { p.scaleCount = 32; }), 0);
  EXPECT_EQ(changed([](Fp8Product &p) { p.opOfA = CUBLAS_OP_N; }), none);
  EXPECT_EQ(changed([](Fp8Product &p) { p.opOfB = CUBLAS_OP_T; }), none);
  EXPECT_EQ(changed([](Fp8Product &p) { p.k = 136; }), none);
  EXPECT_EQ(changed([](Fp8Product &p) { p.n = 24; }), none);
  EXPECT_GT(changed([](Fp8Product &p) { p.bType = CUDA_R_8F_E5M2; }), 0);
  ::setenv("DS_FAKE_CUDA_CAPABILITY", "100", 1);
  EXPECT_EQ(product(vector, square).run(), none);
  EXPECT_GT(Fp8Product().run(), 0);
  ::unsetenv("DS_FAKE_CUDA_CAPABILITY");
}

} // namespace
