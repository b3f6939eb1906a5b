// matmul by cuBLASLt: c[..., m, n] = op(a) op(b) + bias, with GELU and its gradient as epilogues where cuBLASLt has
// them for the types, else behind it (matmul_epilogue_cuda.h).
//
// Algorithms are chosen when the kernel is made, by cuBLASLt's heuristics within the workspace of the plan, once for
// operands at multiples of 16 bytes and once for any, and kept: so every step runs the same ones. Split sums are added
// in a fixed order, never by atomics. bfloat16 is summed in float32; float32 is exact unless the call allows TF32.
#include "kernels/cuda/CublasLt.h"
#include "kernels/cuda/Fallback.h"
#include "kernels/cuda/Launch.h"
#include "kernels/matmul/matmul_epilogue_cuda.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

namespace ds::kernels::cuda {

cublasLtHandle_t cublasLtHandle() {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess)
    throw Error("cuBLASLt: no CUDA device is current");
  const std::lock_guard lock(mutex);
  cublasLtHandle_t &handle = handles[device];
  if (!handle)
    checkCublas(cublasLtCreate(&handle), "cannot make a handle");
  return handle;
}

namespace {

constexpr int64_t workspaceAlignment = 256;

cudaDataType_t typeOf(DType dtype) {
  return dtype == DType::F32 ? CUDA_R_32F : dtype == DType::F64 ? CUDA_R_64F : CUDA_R_16BF;
}

template <typename T> void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name, T value) {
  checkCublas(cublasLtMatmulDescSetAttribute(description, name, &value, sizeof(value)), "cannot describe a product");
}

LtLayout layoutOf(const ColumnMajor &matrix, DType dtype, int64_t batches) {
  cublasLtMatrixLayout_t made = nullptr;
  checkCublas(
      cublasLtMatrixLayoutCreate(&made, typeOf(dtype), uint64_t(matrix.rows), uint64_t(matrix.cols), matrix.leading),
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

/// The addresses that one launch gets besides a, b and c.
struct EpilogueAddresses {
  const void *bias = nullptr;
  void *aux = nullptr, *dbias = nullptr;
};

/// A description, its layouts, and an algorithm.
class Product {
public:
  /// With the call's bias and epilogue if `fused`, and with dbias if `sums`; hasAlgorithm() tells whether cuBLASLt can.
  /// `alignment`: of all addresses, in bytes.
  Product(const MatmulCall &call, const MatmulPlan &plan, DType cType, bool fused, bool sums, uint32_t alignment,
          int64_t workspaceBytes)
      : epilogue_(fused && (call.bias || call.epilogue != MatmulEpilogue::None)), sums_(fused && sums) {
    cublasLtMatmulDesc_t made = nullptr;
    const bool isDouble = call.dtype == DType::F64;
    const cublasComputeType_t compute = isDouble                                ? CUBLAS_COMPUTE_64F
                                        : call.dtype == DType::F32 && call.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                                : CUBLAS_COMPUTE_32F;
    checkCublas(cublasLtMatmulDescCreate(&made, compute, isDouble ? CUDA_R_64F : CUDA_R_32F),
                "cannot describe a product");
    description_.reset(made);
    set(made, CUBLASLT_MATMUL_DESC_TRANSA, plan.transposeFirst ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(made, CUBLASLT_MATMUL_DESC_TRANSB, plan.transposeSecond ? CUBLAS_OP_T : CUBLAS_OP_N);
    first_ = layoutOf(plan.first, call.dtype, plan.batches);
    second_ = layoutOf(plan.second, call.dtype, plan.batches);
    result_ = layoutOf(plan.result, cType, plan.batches);
    if (epilogue_)
      describeEpilogue(call, plan, cType);
    choose(alignment, workspaceBytes);
  }

  bool hasAlgorithm() const { return algorithm_.has_value(); }

  cublasStatus_t enqueue(const void *a, const void *b, void *c, const EpilogueAddresses &addresses, bool isDouble,
                         void *workspace, size_t workspaceBytes, cudaStream_t stream) {
    if (epilogue_)
      if (const cublasStatus_t status = setAddresses(addresses); status != CUBLAS_STATUS_SUCCESS)
        return status;
    const double one = 1, zero = 0;
    const float oneFloat = 1, zeroFloat = 0;
    const void *alpha = isDouble ? static_cast<const void *>(&one) : &oneFloat;
    const void *beta = isDouble ? static_cast<const void *>(&zero) : &zeroFloat;
    return cublasLtMatmul(handle_, description_.get(), alpha, b, first_.get(), a, second_.get(), beta, c, result_.get(),
                          c, result_.get(), &*algorithm_, workspace, workspaceBytes, stream);
  }

private:
  void describeEpilogue(const MatmulCall &call, const MatmulPlan &plan, DType cType) {
    const bool grad = call.epilogue == MatmulEpilogue::GeluTanhGrad;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    if (call.epilogue == MatmulEpilogue::GeluTanh)
      epilogue = call.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    else if (grad)
      epilogue = sums_ ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
    cublasLtMatmulDesc_t description = description_.get();
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    // That of c, else cuBLASLt has no algorithm: a bfloat16 bias of a float32 c is added behind the product.
    set(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t(typeOf(call.bias ? call.dtype : cType)));
    if (call.epilogue != MatmulEpilogue::None) {
      set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, plan.result.leading);
      set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, plan.result.stride);
      set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, int32_t(typeOf(cType)));
    }
    hasBias_ = call.bias || sums_;
    hasAux_ = call.aux != 0;
    // Heuristics only look whether there are addresses; they are not read.
    auto *somewhere = reinterpret_cast<void *>(uintptr_t(workspaceAlignment));
    checkCublas(setAddresses({somewhere, somewhere, somewhere}), "cannot describe an epilogue");
  }

  cublasStatus_t setAddresses(const EpilogueAddresses &addresses) {
    const void *bias = sums_ ? addresses.dbias : addresses.bias;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (hasBias_)
      status =
          cublasLtMatmulDescSetAttribute(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
    if (hasAux_ && status == CUBLAS_STATUS_SUCCESS)
      status = cublasLtMatmulDescSetAttribute(description_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
                                              &addresses.aux, sizeof(addresses.aux));
    return status;
  }

  void choose(uint32_t alignment, int64_t workspaceBytes) {
    cublasLtMatmulPreference_t made = nullptr;
    checkCublas(cublasLtMatmulPreferenceCreate(&made), "cannot state a preference");
    const LtPreference preference(made);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
      checkCublas(cublasLtMatmulPreferenceSetAttribute(made, name, &value, sizeof(value)), "cannot state a preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(workspaceBytes));
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           uint32_t(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                    CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE));
    for (auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(name, alignment);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, description_.get(), first_.get(), second_.get(), result_.get(),
                                       result_.get(), made, 1, &found, &count);
    if (status == CUBLAS_STATUS_SUCCESS && count == 1 && found.state == CUBLAS_STATUS_SUCCESS)
      algorithm_ = found.algo;
  }

  cublasLtHandle_t handle_ = cublasLtHandle();
  LtDescription description_;
  LtLayout first_, second_, result_;
  std::optional<cublasLtMatmulAlgo_t> algorithm_;
  bool epilogue_, sums_, hasBias_ = false, hasAux_ = false;
};

class Matmul final : public Kernel {
public:
  explicit Matmul(const Call &call)
      : call_(call), plan_(call_), cType_(call.dtype(call_.c)),
        dbiasType_(call_.dbias ? call.dtype(call_.dbias) : cType_),
        workspaceBytes_(std::max<int64_t>(call_.workspace.bytes - workspaceAlignment, 0)) {
    if (plan_.k == 0 || plan_.launches.empty())
      return;
    for (size_t aligned : {0, 1})
      variants_[aligned] = makeVariant(aligned ? 16 : uint32_t(byteSize(call_.dtype)));
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const cudaStream_t stream = streamOf(context);
    Variant &variant = variants_[isAligned(operands)];
    if (Status status = enqueueProducts(variant, operands, stream); !status.ok())
      return status;
    if (!variant.fused || (call_.dbias && !variant.sums))
      enqueueMatmulEpilogue(restOf(variant, operands), stream);
    return launchStatus("matmul");
  }

  /// Whether cuBLASLt has no algorithm for aligned operands.
  bool isPlain() const { return plan_.k > 0 && !plan_.launches.empty() && !variants_[1].product; }

private:
  struct Variant {
    std::optional<Product> product; ///< empty: the plain kernel
    bool fused = false;             ///< with bias and epilogue
    bool sums = false;              ///< with dbias too
  };

  Variant makeVariant(uint32_t alignment) const {
    Variant variant;
    // Column sums of one launch are not those of all batches, and cuBLASLt's have the type of c.
    const bool sums = call_.dbias && dbiasType_ == cType_ && plan_.batches == 1 && plan_.launches.size() == 1;
    struct Wanted {
      bool fused, sums;
    };
    for (const Wanted wanted : {Wanted{true, sums}, Wanted{true, false}, Wanted{false, false}}) {
      variant.product.emplace(call_, plan_, cType_, wanted.fused, wanted.sums, alignment, workspaceBytes_);
      variant.fused = wanted.fused;
      variant.sums = wanted.sums;
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
    const auto workspace = (reinterpret_cast<uintptr_t>(call_.workspace.at(operands)) + workspaceAlignment - 1) /
                           workspaceAlignment * workspaceAlignment;
    for (const MatmulPlan::Start &start : plan_.launches) {
      if (!variant.product) {
        enqueuePlainProduct(plan_, start, call_.dtype, cType_, operands[0], operands[1], target, stream);
        continue;
      }
      const EpilogueAddresses addresses{call_.bias ? operands[2] : nullptr,
                                        call_.aux ? byte(operands[call_.aux], start.c, cType_) : nullptr,
                                        call_.dbias ? operands[call_.dbias] : nullptr};
      const cublasStatus_t status =
          variant.product->enqueue(byte(operands[0], start.a, call_.dtype), byte(operands[1], start.b, call_.dtype),
                                   byte(target, start.c, cType_), addresses, call_.dtype == DType::F64,
                                   reinterpret_cast<void *>(workspace), size_t(workspaceBytes_), stream);
      if (status != CUBLAS_STATUS_SUCCESS)
        return Status::failure("kernel 'matmul': cuBLASLt: %s", cublasLtGetStatusString(status));
    }
    return Status::success();
  }

  static Status cudaStatus(cudaError_t error) {
    return error == cudaSuccess ? Status::success() : Status::failure("kernel 'matmul': %s", cudaGetErrorString(error));
  }

  /// What the variant has not done.
  MatmulEpilogueArguments restOf(const Variant &variant, std::span<void *const> operands) const {
    return {variant.fused ? MatmulEpilogue::None : call_.epilogue,
            cType_,
            call_.dtype,
            dbiasType_,
            plan_.rows(),
            plan_.n,
            operands[call_.product()],
            call_.bias && !variant.fused ? operands[2] : nullptr,
            call_.aux ? operands[call_.aux] : nullptr,
            operands[call_.c],
            call_.dbias ? operands[call_.dbias] : nullptr};
  }

  MatmulCall call_;
  MatmulPlan plan_;
  DType cType_, dbiasType_;
  int64_t workspaceBytes_;
  Variant variants_[2]; ///< for any addresses, for multiples of 16 bytes
};

} // namespace

std::unique_ptr<Kernel> makeMatmul(const Invocation &invocation, const BuildOptions &) {
  auto matmul = std::make_unique<Matmul>(Call(invocation));
  if (matmul->isPlain())
    fallBack(invocation, "cuBLASLt");
  return matmul;
}

} // namespace ds::kernels::cuda
