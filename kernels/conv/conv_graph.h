//===- conv_graph.h - convolutions by cuDNN ------------------------------===//
#pragma once

#include "kernels/conv/conv_cuda_plan.h"
#include "kernels/cuda/CudnnGraph.h"

#include <memory>

namespace ds::kernels::cuda {

/// x, w, y; or dy, w, dx; or dy, x, dw: by the plan.
std::unique_ptr<CudnnGraph> makeConvGraph(const ConvPlan &plan, int64_t workspaceBytes);

} // namespace ds::kernels::cuda
