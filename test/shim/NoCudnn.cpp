//===- NoCudnn.cpp - a cuDNN that supports nothing ------------------------===//
//
// So our own kernels for what it refuses run.
//
//===----------------------------------------------------------------------===//
#include "kernels/attention/attention_graph.h"
#include "kernels/conv/conv_graph.h"

namespace ds::kernels::cuda {

std::unique_ptr<CudnnGraph> makeAttentionGraph(const AttentionCall &, std::span<const TensorType>, int64_t) {
  return nullptr;
}
std::unique_ptr<CudnnGraph> makeAttentionGradGraph(const AttentionCall &, std::span<const TensorType>, int64_t) {
  return nullptr;
}
std::unique_ptr<CudnnGraph> makeConvGraph(const ConvPlan &, int64_t) { return nullptr; }

} // namespace ds::kernels::cuda
