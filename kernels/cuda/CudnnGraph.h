//===- CudnnGraph.h - an operation that cuDNN runs ------------------------===//
//
// Made when the kernel is made: cuDNN's heuristics choose a deterministic engine within the workspace of the plan, and
// it is kept. What cuDNN does not support gives no graph, and the kernel falls back to one of ours.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/Status.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <span>

namespace ds::kernels::cuda {

class CudnnGraph {
public:
  virtual ~CudnnGraph() = default;
  /// `addresses` of the operation's tensors in the order of its maker; the workspace is the plan's.
  virtual Status enqueue(std::span<void *const> addresses, void *workspace, cudaStream_t stream) noexcept = 0;
};

} // namespace ds::kernels::cuda
