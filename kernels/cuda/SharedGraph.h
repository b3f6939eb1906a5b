//===- SharedGraph.h - one graph of cuDNN for equal calls ------------------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "kernels/cuda/CudnnGraph.h"

#include <functional>
#include <memory>

namespace ds::kernels::cuda {

/// The graph of an invocation. Equal ones share one: cuDNN chooses and compiles an engine for each graph, and the
/// layers of a model are alike. It lives as long as a kernel holds it. `make` is called where there is none that this
/// thread has made for its current device; it gives null where cuDNN does not support the call, which is kept, too.
std::shared_ptr<CudnnGraph> sharedGraph(const Invocation &invocation,
                                        const std::function<std::unique_ptr<CudnnGraph>()> &make);

} // namespace ds::kernels::cuda
