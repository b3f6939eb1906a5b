//===- cudnn.h - handles of cuDNN, on a host ------------------------------===//
#pragma once

#include "test/shim/cuda_runtime_api.h"

enum cudnnStatus_t {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_INTERNAL_ERROR = 4000,
  CUDNN_STATUS_MAPPING_ERROR = 5001, ///< a stream of another GPU than the handle's
};
using cudnnHandle_t = struct FakeCudnnHandle *;

inline size_t cudnnGetVersion() { return 0; }
/// Of the current GPU.
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
