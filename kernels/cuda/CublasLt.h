//===- CublasLt.h - cuBLASLt's objects, owned -----------------------------===//
#pragma once

#include "core/Error.h"

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace ds::kernels::cuda {

/// Throws where a call made before any launch fails.
inline void checkCublas(cublasStatus_t status, const char *what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(std::string("cuBLASLt: ") + what + ": " + cublasLtGetStatusString(status));
}

/// The handle of the current device, made at first use and kept as long as the process.
cublasLtHandle_t cublasLtHandle();

/// Of the current device, as CUDA names it.
std::string gpuName();

template <typename T, cublasStatus_t (*destroy)(T)> struct CublasDeleter {
  void operator()(std::remove_pointer_t<T> *object) const { destroy(object); }
};
using LtDescription = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>,
                                      CublasDeleter<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>>;
using LtLayout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>,
                                 CublasDeleter<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>>;
using LtPreference = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                                     CublasDeleter<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>>;

} // namespace ds::kernels::cuda
