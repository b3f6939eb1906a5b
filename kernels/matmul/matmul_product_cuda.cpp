// One product of cuBLASLt: its description, and the algorithm that stays the same from step to step.
#include "kernels/matmul/matmul_product_cuda.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace ds::kernels::cuda {

namespace {

/// What make(device) gives for the current device, made at first use.
template <typename Make> auto &ofCurrentDevice(Make make) {
  static std::mutex mutex;
  static std::map<int, decltype(make(0))> all;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess)
    throw Error("cuBLASLt: no CUDA device is current");
  const std::lock_guard lock(mutex);
  const auto known = all.find(device);
  return known != all.end() ? known->second : all.emplace(device, make(device)).first->second;
}

} // namespace

cublasLtHandle_t cublasLtHandle() {
  return ofCurrentDevice([](int) {
    cublasLtHandle_t handle = nullptr;
    checkCublas(cublasLtCreate(&handle), "cannot make a handle");
    return handle;
  });
}

std::string gpuName() {
  return ofCurrentDevice([](int device) {
    cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, device);
    return error == cudaSuccess ? std::string(properties.name) : std::string();
  });
}

cudaDataType_t cublasTypeOf(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return CUDA_R_64F;
  case DType::BF16:
    return CUDA_R_16BF;
  case DType::F16:
    return CUDA_R_16F;
  default:
    return CUDA_R_32F;
  }
}

namespace {

constexpr int64_t workspaceAlignment = 256;

template <typename T> void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name, T value) {
  checkCublas(cublasLtMatmulDescSetAttribute(description, name, &value, sizeof(value)), "cannot describe a product");
}

cudaDataType_t cublasTypeOf(Float8 format) { return format == Float8::E4M3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2; }

cublasLtMatmulMatrixScale_t cublasScaleOf(Float8Block block) {
  return block == Float8Block::Tensor ? CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F
         : block == Float8Block::Line ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F
                                      : CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
}

LtLayout layoutOf(const ColumnMajor &matrix, cudaDataType_t type, int64_t batches) {
  cublasLtMatrixLayout_t made = nullptr;
  checkCublas(cublasLtMatrixLayoutCreate(&made, type, uint64_t(matrix.rows), uint64_t(matrix.cols), matrix.leading),
              "cannot describe a matrix");
  LtLayout layout(made);
  const auto count = int32_t(batches);
  const int64_t stride = matrix.stride;
  checkCublas(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
              "cannot describe a batch");
  checkCublas(
      cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)),
      "cannot describe a batch");
  return layout;
}

} // namespace

LtProduct::LtProduct(const MatmulCall &call, const MatmulPlan &plan, DType cType, const ProductEpilogue &epilogue,
                     uint32_t alignment, int64_t workspaceBytes, std::optional<ScaledFactors> scaled)
    : isDouble_(call.dtype == DType::F64), isScaled_(scaled.has_value()), alignment_(alignment),
      workspaceBytes_(std::max<int64_t>(workspaceBytes - workspaceAlignment, 0)) {
  cublasLtMatmulDesc_t made = nullptr;
  const cublasComputeType_t compute = isDouble_                               ? CUBLAS_COMPUTE_64F
                                      : call.dtype == DType::F32 && call.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                              : CUBLAS_COMPUTE_32F;
  checkCublas(cublasLtMatmulDescCreate(&made, compute, isDouble_ ? CUDA_R_64F : CUDA_R_32F),
              "cannot describe a product");
  description_.reset(made);
  set(made, CUBLASLT_MATMUL_DESC_TRANSA, plan.transposeFirst ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(made, CUBLASLT_MATMUL_DESC_TRANSB, plan.transposeSecond ? CUBLAS_OP_T : CUBLAS_OP_N);
  first_ = layoutOf(plan.first, scaled ? cublasTypeOf(scaled->b) : cublasTypeOf(call.dtype), plan.batches);
  second_ = layoutOf(plan.second, scaled ? cublasTypeOf(scaled->a) : cublasTypeOf(call.dtype), plan.batches);
  result_ = layoutOf(plan.result, cublasTypeOf(cType), plan.batches);
  if (scaled)
    describeScales(*scaled);
  if (!epilogue.isNone())
    describeEpilogue(epilogue, plan);
  if (call.algorithm && alignment >= 16)
    algorithm_ = checked(*call.algorithm);
  if (!algorithm_)
    if (const std::vector<cublasLtMatmulAlgo_t> found = heuristics(1); !found.empty())
      algorithm_ = found[0];
}

void LtProduct::describeScales(const ScaledFactors &scaled) {
  set(description_.get(), CUBLASLT_MATMUL_DESC_A_SCALE_MODE, cublasScaleOf(scaled.bBlock)); // our b is the first
  set(description_.get(), CUBLASLT_MATMUL_DESC_B_SCALE_MODE, cublasScaleOf(scaled.aBlock));
  // Heuristics refuse scales of blocks that have no address; it is not read.
  const auto *somewhere = reinterpret_cast<const void *>(uintptr_t(workspaceAlignment));
  checkCublas(setAddresses({.aScale = somewhere, .bScale = somewhere}), "cannot describe scales");
}

void LtProduct::describeEpilogue(const ProductEpilogue &epilogue, const MatmulPlan &plan) {
  cublasLtMatmulDesc_t description = description_.get();
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue.kind);
  if (epilogue.bias)
    set(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t(cublasTypeOf(*epilogue.bias)));
  if (epilogue.aux) {
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, plan.result.leading);
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, plan.result.stride);
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, int32_t(cublasTypeOf(*epilogue.aux)));
  }
  hasBias_ = epilogue.bias.has_value();
  hasAux_ = epilogue.aux.has_value();
  // Heuristics look whether there are addresses, and at which multiples; they are not read.
  auto *somewhere = reinterpret_cast<void *>(uintptr_t(workspaceAlignment + alignment_));
  checkCublas(setAddresses({.bias = somewhere, .aux = somewhere, .aScale = somewhere, .bScale = somewhere}),
              "cannot describe an epilogue");
}

cublasStatus_t LtProduct::setAddresses(const Addresses &addresses) noexcept {
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const auto set = [&](cublasLtMatmulDescAttributes_t name, const void *address) {
    if (status == CUBLAS_STATUS_SUCCESS)
      status = cublasLtMatmulDescSetAttribute(description_.get(), name, &address, sizeof(address));
  };
  if (hasBias_)
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, addresses.bias);
  if (hasAux_)
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, addresses.aux);
  if (isScaled_) { // our b is the first matrix
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, addresses.bScale);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, addresses.aScale);
  }
  return status;
}

std::vector<cublasLtMatmulAlgo_t> LtProduct::heuristics(int most) const {
  cublasLtMatmulPreference_t made = nullptr;
  checkCublas(cublasLtMatmulPreferenceCreate(&made), "cannot state a preference");
  const LtPreference preference(made);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
    checkCublas(cublasLtMatmulPreferenceSetAttribute(made, name, &value, sizeof(value)), "cannot state a preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(workspaceBytes_));
  // Not OUTPUT_TYPE: parts of a sum would be kept in 16 bits.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         uint32_t(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(name, alignment_);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, description_.get(), first_.get(), second_.get(), result_.get(),
                                     result_.get(), made, most, results.data(), &count);
  std::vector<cublasLtMatmulAlgo_t> found;
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i)
    if (results[size_t(i)].state == CUBLAS_STATUS_SUCCESS)
      found.push_back(results[size_t(i)].algo);
  return found;
}

std::optional<cublasLtMatmulAlgo_t> LtProduct::checked(const LibraryAlgorithm &wanted) const {
  cublasLtMatmulAlgo_t algorithm{};
  if (wanted.bytes.size() != sizeof(algorithm) || wanted.version != cublasLtGetVersion() || wanted.gpu != gpuName())
    return std::nullopt;
  std::memcpy(&algorithm, wanted.bytes.data(), sizeof(algorithm));
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status = cublasLtMatmulAlgoCheck(handle_, description_.get(), first_.get(), second_.get(),
                                                        result_.get(), result_.get(), &algorithm, &result);
  if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > size_t(workspaceBytes_))
    return std::nullopt;
  return algorithm;
}

std::vector<std::string> LtProduct::algorithms(int most) const {
  const auto bytesOf = [](const cublasLtMatmulAlgo_t &algorithm) {
    return std::string(reinterpret_cast<const char *>(&algorithm), sizeof(algorithm));
  };
  std::vector<std::string> all;
  if (algorithm_)
    all.push_back(bytesOf(*algorithm_));
  for (const cublasLtMatmulAlgo_t &algorithm : heuristics(most))
    if (std::string bytes = bytesOf(algorithm); all.size() < size_t(most) && std::ranges::find(all, bytes) == all.end())
      all.push_back(std::move(bytes));
  return all;
}

Status LtProduct::enqueue(const Addresses &addresses, void *workspace, cudaStream_t stream) noexcept {
  const double one = 1, zero = 0;
  const float oneFloat = 1, zeroFloat = 0;
  const void *alpha = isDouble_ ? static_cast<const void *>(&one) : &oneFloat;
  const void *beta = isDouble_ ? static_cast<const void *>(&zero) : &zeroFloat;
  const auto aligned = (reinterpret_cast<uintptr_t>(workspace) + workspaceAlignment - 1) / workspaceAlignment;
  void *own = reinterpret_cast<void *>(aligned * workspaceAlignment);
  cublasStatus_t status = setAddresses(addresses);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = cublasLtMatmul(handle_, description_.get(), alpha, addresses.b, first_.get(), addresses.a, second_.get(),
                            beta, addresses.c, result_.get(), addresses.c, result_.get(), &*algorithm_, own,
                            size_t(workspaceBytes_), stream);
  return status == CUBLAS_STATUS_SUCCESS ? Status::success()
                                         : Status::failure("a product: cuBLASLt: %s", cublasLtGetStatusString(status));
}

} // namespace ds::kernels::cuda
