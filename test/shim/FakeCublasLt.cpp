//===- FakeCublasLt.cpp - products as cuBLASLt's descriptions say them ----===//
//
// Types, layouts, strides, epilogues and workspaces are honoured; what the tables of cublasLtMatmul() do not have is
// refused, by the heuristics with no algorithm and by the product with a status. Every matrix and vector must lie in
// device memory that is in use. The workspace is written over, as a real product may.
//
// Each product has three algorithms. The first is what the heuristics choose. The second gives the same bits, in 0.8 of
// the time where d has more rows than columns, else in 1.25. The third adds up from the other end, in half of the time.
// Where split sums may have d's type, a fourth comes first, which keeps both halves of a sum in it. An algorithm wants
// addresses that are multiples of what the heuristics were told and shown. DS_FAKE_CUBLASLT_EPILOGUES=0: products
// alone. DS_FAKE_CUDA_CAPABILITY: that of the GPU, 90, by which the scales of blocks of FP8 are there or not.
//
//===----------------------------------------------------------------------===//
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "kernels/Float8.h"
#include "kernels/GeluTanh.h"
#include "test/shim/FakeRuntime.h"
#include "test/shim/Machine.h"
#include "test/shim/cublasLt.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <vector>

struct FakeLtHandle {};
struct FakeLtMatmul {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t transA = CUBLAS_OP_N, transB = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr, *aux = nullptr;
  const float *aScale = nullptr, *bScale = nullptr; ///< of FP8; none: 1
  int32_t aScaleMode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, bScaleMode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  int64_t auxLeading = 0, auxStride = 0;
  int32_t auxType = -1, biasType = -1; ///< -1: that of d
};
struct FakeLtLayout {
  cudaDataType_t type;
  uint64_t rows, cols;
  int64_t leading;
  int32_t batches = 1;
  int64_t stride = 0;
};
struct FakeLtPreference {
  uint64_t workspaceBytes = 0;
  uint32_t reductions = 7, alignmentA = 256, alignmentB = 256, alignmentC = 256, alignmentD = 256;
};

namespace {

constexpr uint32_t biasBit = 4, biasGradBit = 16, geluBit = 32, geluGradBit = 64, auxBit = 128, firstSumsBit = 256,
                   secondSumsBit = 512, // of a over its rows' depth, of b over its columns'
    anyBias = biasBit | biasGradBit | firstSumsBit | secondSumsBit;
constexpr size_t wantedWorkspace = 4096;
enum Algorithm : uint64_t { first, second, backwards, halves, algorithmCount };
enum AlgorithmWord { which, alignmentWord, workspaceWord, biasWord, auxWord, unusedWords }; // of cublasLtMatmulAlgo_t
constexpr auto executionFailed = cublasStatus_t(13);
constexpr auto launchFailed = cublasStatus_t(14); // CUBLAS_STATUS_INTERNAL_ERROR

bool isFp8(int32_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }
size_t bytesOf(int32_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : isFp8(type) ? 1 : 2; }

double load(const void *data, int32_t type, int64_t i) {
  if (type == CUDA_R_64F)
    return static_cast<const double *>(data)[i];
  if (type == CUDA_R_32F)
    return static_cast<const float *>(data)[i];
  if (type == CUDA_R_16F)
    return float(static_cast<const ds::Float16 *>(data)[i]);
  if (isFp8(type))
    return ds::kernels::float8Value(type == CUDA_R_8F_E4M3 ? ds::kernels::Float8::E4M3 : ds::kernels::Float8::E5M2,
                                    static_cast<const uint8_t *>(data)[i]);
  return float(static_cast<const ds::BFloat16 *>(data)[i]);
}
void store(void *data, int32_t type, int64_t i, double x) {
  if (type == CUDA_R_64F)
    static_cast<double *>(data)[i] = x;
  else if (type == CUDA_R_32F)
    static_cast<float *>(data)[i] = float(x);
  else if (type == CUDA_R_16F)
    static_cast<ds::Float16 *>(data)[i] = ds::Float16(float(x));
  else
    static_cast<ds::BFloat16 *>(data)[i] = ds::BFloat16(float(x));
}

double asStored(double x, int32_t type) {
  double bytes = 0;
  store(&bytes, type, 0, x);
  return load(&bytes, type, 0);
}

/// The largest power of two up to 16 that divides an address.
uint64_t multipleOf(const void *address) {
  const auto value = uintptr_t(address) | 16;
  return value & ~(value - 1);
}

/// Copies `bytes` where the attribute has so many.
template <typename T> cublasStatus_t set(T &field, const void *value, size_t bytes) {
  if (value == nullptr || bytes != sizeof(T))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T> cublasStatus_t destroy(T *object) {
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}

/// The scales of one factor of FP8, of codes [lines, depth].
struct Scales {
  const float *data; ///< null: 1
  int32_t mode;
  int64_t lines, depth;

  bool isBlocked() const { return mode != CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F; }
  /// By the page's "Scaling factors layouts": of vectors the lines lie innermost; of squares the blocks of a line, up
  /// to a multiple of 4.
  int64_t count() const {
    const int64_t blocks = (depth + 127) / 128;
    return mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F       ? lines * blocks
           : mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F ? (lines + 127) / 128 * ((blocks + 3) / 4 * 4)
                                                                 : 1;
  }
  float at(int64_t line, int64_t block) const {
    if (data == nullptr)
      return 1;
    return data[mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F ? block * lines + line
                : mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F
                    ? line / 128 * (((depth + 127) / 128 + 3) / 4 * 4) + block
                    : 0];
  }
  /// Whether they lie where matrices do, those of blocks at a multiple of 16 bytes.
  bool isUsable() const { return data == nullptr || shim::isUsable(data, size_t(count()) * sizeof *data); }
  bool isAligned() const { return !isBlocked() || uintptr_t(data) % 16 == 0; }
};

/// One product, checked.
struct Described {
  const FakeLtMatmul &op;
  const FakeLtLayout &a, &b, &d;
  int64_t m, n, k;
  Scales aScales, bScales;
  uint64_t algorithm = first;

  Described(const FakeLtMatmul &op, const FakeLtLayout &a, const FakeLtLayout &b, const FakeLtLayout &d)
      : op(op), a(a), b(b), d(d), m(int64_t(d.rows)), n(int64_t(d.cols)),
        k(int64_t(op.transA == CUBLAS_OP_T ? a.rows : a.cols)), aScales{op.aScale, op.aScaleMode, m, k},
        bScales{op.bScale, op.bScaleMode, n, k} {}

  bool has(uint32_t bits) const { return op.epilogue != CUBLASLT_EPILOGUE_DEFAULT && (op.epilogue & bits) != 0; }
  int64_t biasLength() const { return has(secondSumsBit) ? n : m; }
  int32_t biasType() const { return op.biasType < 0 ? d.type : op.biasType; }
  int32_t auxType() const { return op.auxType < 0 ? d.type : op.auxType; }

  bool fits() const {
    const auto is = [](const FakeLtLayout &layout, int64_t rows, int64_t cols, bool transposed) {
      return int64_t(layout.rows) == (transposed ? cols : rows) && int64_t(layout.cols) == (transposed ? rows : cols) &&
             layout.leading >= int64_t(layout.rows);
    };
    return is(a, m, k, op.transA == CUBLAS_OP_T) && is(b, k, n, op.transB == CUBLAS_OP_T) && is(d, m, n, false) &&
           a.batches == d.batches && b.batches == d.batches;
  }

  /// The table of types, and of bias types with each row.
  bool hasTypes() const {
    if (isFp8(a.type) || isFp8(b.type))
      return hasFp8Types();
    if (a.type != b.type || op.scale != (op.compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F))
      return false;
    if (op.compute == CUBLAS_COMPUTE_64F)
      return a.type == CUDA_R_64F && d.type == CUDA_R_64F && biasType() == CUDA_R_64F;
    if (op.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
      return a.type == CUDA_R_32F && d.type == CUDA_R_32F && biasType() == CUDA_R_32F;
    return (a.type == CUDA_R_32F && d.type == CUDA_R_32F && biasType() == CUDA_R_32F) ||
           ((a.type == CUDA_R_16BF || a.type == CUDA_R_16F) && (d.type == a.type || d.type == CUDA_R_32F) &&
            biasType() == d.type);
  }

  /// The table of FP8, and what the page says of it: "TN" alone, sums in float32, matrices of multiples of 16, not both
  /// E5M2. What c and d may be beside these, FP8, none of our calls asks for.
  bool hasFp8Types() const {
    const bool isSize = m % 16 == 0 && n % 16 == 0 && k % 16 == 0 && a.leading % 16 == 0 && b.leading % 16 == 0 &&
                        d.leading * int64_t(bytesOf(d.type)) % 16 == 0;
    return isSize && hasScaleModes() && isFp8(a.type) && isFp8(b.type) &&
           !(a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) && op.transA == CUBLAS_OP_T &&
           op.transB == CUBLAS_OP_N && op.compute == CUBLAS_COMPUTE_32F && op.scale == CUDA_R_32F &&
           (d.type == CUDA_R_16BF || d.type == CUDA_R_32F) &&
           (op.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
            (op.epilogue == CUBLASLT_EPILOGUE_BIAS && biasType() == CUDA_R_16BF));
  }

  /// Scales of blocks are those of compute capability 9.0 alone, of both factors or of none, not squares of both; the
  /// library's own message says that a mode other than SCALAR_32F "requires a custom pointer".
  bool hasScaleModes() const {
    if (!aScales.isBlocked() && !bScales.isBlocked())
      return true;
    const auto isKnown = [](int32_t mode) {
      return mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F || mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    };
    const bool areSquares =
        op.aScaleMode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F && op.bScaleMode == op.aScaleMode;
    return shim::numberOf("DS_FAKE_CUDA_CAPABILITY", 90) == 90 && isKnown(op.aScaleMode) && isKnown(op.bScaleMode) &&
           !areSquares && op.aScale != nullptr && op.bScale != nullptr;
  }

  bool hasEpilogue() const {
    if (has(anyBias) && op.bias == nullptr)
      return false;
    if (has(anyBias & ~biasBit) && d.batches > 1)
      return false;
    // Known to exist for these sides alone: the sums run along what lies innermost.
    if ((has(firstSumsBit) && op.transA != CUBLAS_OP_N) || (has(secondSumsBit) && op.transB != CUBLAS_OP_T))
      return false;
    if (op.epilogue != CUBLASLT_EPILOGUE_DEFAULT && shim::numberOf("DS_FAKE_CUBLASLT_EPILOGUES", 1) == 0)
      return false;
    return !has(auxBit) || (op.compute != CUBLAS_COMPUTE_64F && op.aux != nullptr && uintptr_t(op.aux) % 16 == 0 &&
                            op.auxLeading % 8 == 0 && op.auxLeading >= m && auxType() == d.type);
  }
};

bool isSame(const FakeLtLayout &one, const FakeLtLayout &other) {
  return one.type == other.type && one.rows == other.rows && one.cols == other.cols && one.leading == other.leading &&
         one.batches == other.batches && one.stride == other.stride;
}

bool isUsable(const void *data, const FakeLtLayout &layout) {
  const int64_t last =
      int64_t(layout.batches - 1) * layout.stride + (int64_t(layout.cols) - 1) * layout.leading + int64_t(layout.rows);
  return shim::isUsable(data, size_t(last) * bytesOf(layout.type));
}

/// One matrix with its depth innermost, as numbers of type S.
template <typename S>
std::vector<S> unpacked(const void *data, const FakeLtLayout &layout, int64_t batch, bool depthIsRow) {
  const auto rows = int64_t(layout.rows), cols = int64_t(layout.cols);
  std::vector<S> values(size_t(rows * cols));
  for (int64_t c = 0; c < cols; ++c)
    for (int64_t r = 0; r < rows; ++r)
      values[size_t(depthIsRow ? c * rows + r : r * cols + c)] =
          S(load(data, layout.type, batch * layout.stride + c * layout.leading + r));
  return values;
}

/// `values` are rows of `depth` numbers: their sums are the epilogue's.
template <typename S> void storeSums(const Described &p, const std::vector<S> &values, int64_t depth) {
  for (int64_t i = 0; i < p.biasLength(); ++i)
    store(p.op.bias, p.biasType(), i,
          std::accumulate(values.begin() + i * depth, values.begin() + (i + 1) * depth, S(0)));
}

/// The sum over the depth of one element of d, in the algorithm's order; a block's is multiplied by its scales.
template <typename S> S dot(const Described &p, int64_t i, int64_t j, const S *left, const S *right) {
  const int64_t step = p.aScales.isBlocked() ? 128 : p.k;
  S sum = 0, ofBlock = 0;
  for (int64_t l = 0; l < p.k; ++l) {
    const int64_t at = p.algorithm == backwards ? p.k - 1 - l : l, block = at / step;
    if (p.algorithm == halves && l == p.k / 2)
      ofBlock = S(asStored(ofBlock, p.d.type));
    ofBlock += left[at] * right[at];
    const int64_t next = p.algorithm == backwards ? at - 1 : at + 1;
    if (next >= 0 && next < p.k && next / step == block)
      continue;
    sum += S(p.aScales.at(i, block)) * S(p.bScales.at(j, block)) * ofBlock;
    ofBlock = 0;
  }
  return sum;
}

/// d = epilogue(op(a) op(b)); alpha is 1 and beta 0, as our calls say. S: the compute type.
template <typename S> void compute(const Described &p, const void *a, const void *b, void *d, int64_t batch) {
  const std::vector<S> left = unpacked<S>(a, p.a, batch, p.op.transA == CUBLAS_OP_T);
  const std::vector<S> right = unpacked<S>(b, p.b, batch, p.op.transB == CUBLAS_OP_N);
  if (p.has(firstSumsBit | secondSumsBit))
    storeSums(p, p.has(firstSumsBit) ? left : right, p.k);
  for (int64_t i = 0; i < p.m; ++i) {
    S gradient = 0;
    for (int64_t j = 0; j < p.n; ++j) {
      S sum = dot(p, i, j, left.data() + i * p.k, right.data() + j * p.k);
      if (p.has(biasBit))
        sum += S(load(p.op.bias, p.biasType(), i));
      const int64_t at = batch * p.op.auxStride + j * p.op.auxLeading + i;
      if (p.has(geluBit)) {
        store(p.op.aux, p.auxType(), at, sum);
        sum = ds::kernels::geluTanhOf(sum);
      } else if (p.has(geluGradBit)) {
        sum *= ds::kernels::geluTanhSlopeOf(S(load(p.op.aux, p.auxType(), at)));
      }
      gradient += sum;
      store(d, p.d.type, batch * p.d.stride + j * p.d.leading + i, sum);
    }
    if (p.has(biasGradBit))
      store(p.op.bias, p.biasType(), i, gradient);
  }
}

bool isAlgorithm(const cublasLtMatmulAlgo_t &algorithm) {
  return algorithm.data[which] < algorithmCount &&
         std::all_of(algorithm.data + unusedWords, std::end(algorithm.data), [](uint64_t word) { return word == 0; });
}

double millisecondsOf(const Described &p, const cublasLtMatmulAlgo_t &algorithm) {
  const double factor = algorithm.data[which] == backwards ? 0.5
                        : algorithm.data[which] == first   ? 1
                        : p.m > p.n                        ? 0.8
                                                           : 1.25;
  return factor * 1e-6 * double(p.m * p.n * p.k * p.d.batches);
}

} // namespace

size_t cublasLtGetVersion() { return shim::numberOf("DS_FAKE_CUBLASLT_VERSION", 130100); }

const char *cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "success"
         : status == CUBLAS_STATUS_INVALID_VALUE ? "an argument does not fit the description"
         : status == executionFailed             ? "a matrix, vector or workspace lies outside of every operand"
         : status == launchFailed                ? cudaGetErrorString(cudaErrorLaunchFailure)
                                                 : "not supported";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = new FakeLtHandle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute, cudaDataType_t scale) {
  *made = new FakeLtMatmul{compute, scale};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) { return destroy(description); }

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes) {
  switch (name) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return set(description->transA, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return set(description->transB, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return set(description->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return set(description->bias, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return set(description->aux, value, bytes);
  case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    return set(description->aScale, value, bytes);
  case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    return set(description->bScale, value, bytes);
  case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
    return set(description->aScaleMode, value, bytes);
  case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
    return set(description->bScaleMode, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return set(description->auxLeading, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
    return set(description->auxStride, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
    return set(description->auxType, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
    return set(description->biasType, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType_t type, uint64_t rows,
                                          uint64_t cols, int64_t leading) {
  *made = new FakeLtLayout{type, rows, cols, leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name,
                                                const void *value, size_t bytes) {
  return name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? set(layout->batches, value, bytes)
                                                    : set(layout->stride, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) {
  *made = new FakeLtPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return destroy(preference); }

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name, const void *value,
                                                    size_t bytes) {
  switch (name) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return set(preference->workspaceBytes, value, bytes);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    return set(preference->reductions, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    return set(preference->alignmentA, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    return set(preference->alignmentB, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    return set(preference->alignmentC, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return set(preference->alignmentD, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *count) {
  *count = 0;
  const Described described(*description, *a, *b, *d);
  if (!described.fits() || wanted < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  const uint64_t alignment =
      std::min({preference->alignmentA, preference->alignmentB, preference->alignmentC, preference->alignmentD});
  const bool auxIsAligned = !(described.has(auxBit) || isFp8(a->type)) || alignment >= 16;
  if (!described.hasTypes() || !described.hasEpilogue() || !auxIsAligned)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const size_t workspace = std::min<size_t>(preference->workspaceBytes, wantedWorkspace);
  const bool mayHalve = (preference->reductions & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE) != 0;
  for (; *count < std::min<int>(wanted, mayHalve ? algorithmCount : halves); ++*count) {
    const auto algorithm = (uint64_t(*count) + (mayHalve ? halves : 0)) % algorithmCount;
    results[*count] = {{{algorithm, alignment, workspace, multipleOf(description->bias), multipleOf(description->aux)}},
                       workspace,
                       CUBLAS_STATUS_SUCCESS};
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulHeuristicResult_t *result) {
  const Described described(*description, *a, *b, *d);
  if (!described.fits() || !isAlgorithm(*algorithm))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!described.hasTypes() || !described.hasEpilogue())
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {*algorithm, size_t(algorithm->data[workspaceWord]), CUBLAS_STATUS_SUCCESS};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void *, const void *a,
                              cublasLtMatrixLayout_t aLayout, const void *b, cublasLtMatrixLayout_t bLayout,
                              const void *, const void *c, cublasLtMatrixLayout_t cLayout, void *d,
                              cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspaceBytes, cudaStream_t stream) {
  const Described p(*description, *aLayout, *bLayout, *dLayout);
  const size_t scratch = algorithm->data[workspaceWord];
  if (!p.fits() || !isAlgorithm(*algorithm) || workspaceBytes < scratch)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!p.hasTypes() || !p.hasEpilogue())
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (const void *address : {a, b, c, static_cast<const void *>(d)})
    if (uintptr_t(address) % algorithm->data[alignmentWord] != 0)
      return CUBLAS_STATUS_INVALID_VALUE;
  if ((p.has(anyBias) && multipleOf(description->bias) < algorithm->data[biasWord]) ||
      (p.has(auxBit) && multipleOf(description->aux) < algorithm->data[auxWord]))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!isFp8(aLayout->type) && (description->aScale != nullptr || description->bScale != nullptr))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (isFp8(aLayout->type) && (multipleOf(a) < 16 || multipleOf(b) < 16 || multipleOf(d) < 16 ||
                               !p.aScales.isAligned() || !p.bScales.isAligned()))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (c == d && !isSame(*cLayout, *dLayout)) // in place
    return CUBLAS_STATUS_INVALID_VALUE;
  if (scratch > 0 && uintptr_t(workspace) % 256 != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (scratch > 0 && !shim::isUsable(workspace, scratch))
    return executionFailed;
  const FakeLtLayout aux{cudaDataType_t(p.auxType()), dLayout->rows,    dLayout->cols,
                         description->auxLeading,     dLayout->batches, description->auxStride};
  if (!isUsable(a, *aLayout) || !isUsable(b, *bLayout) || !isUsable(d, *dLayout) ||
      (p.has(anyBias) && !shim::isUsable(description->bias, size_t(p.biasLength()) * bytesOf(p.biasType()))) ||
      (p.has(auxBit) && !isUsable(description->aux, aux)) || !p.aScales.isUsable() || !p.bScales.isUsable())
    return executionFailed;
  const auto product = [op = *description, left = *aLayout, right = *bLayout, result = *dLayout, a, b, d, workspace,
                        scratch, chosen = algorithm->data[which]] {
    if (scratch > 0)
      std::memset(workspace, 0xff, scratch);
    Described p(op, left, right, result);
    p.algorithm = chosen;
    for (int32_t batch = 0; batch < result.batches; ++batch)
      op.compute == CUBLAS_COMPUTE_64F ? compute<double>(p, a, b, d, batch) : compute<float>(p, a, b, d, batch);
  };
  std::vector<const void *> touched{a, b, d};
  for (const void *more : {static_cast<const void *>(workspace), static_cast<const void *>(description->bias),
                           static_cast<const void *>(description->aux), static_cast<const void *>(description->aScale),
                           static_cast<const void *>(description->bScale)})
    if (more != nullptr)
      touched.push_back(more);
  const shim::Work work{
      .what = "a product", .run = product, .touched = touched, .milliseconds = millisecondsOf(p, *algorithm)};
  return shim::submit(stream, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : launchFailed;
}
