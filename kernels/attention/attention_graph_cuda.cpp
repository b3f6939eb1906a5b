// attention and attention_grad as cuDNN's operations.
#include "kernels/attention/attention_graph.h"
#include "kernels/cuda/CudnnGraphBuilder.h"

namespace ds::kernels::cuda {

namespace {

/// A tensor of heads as cuDNN wants it, [batch, heads, rows, width], and how far apart its elements lie.
struct Heads {
  Heads(const AttentionCall &call, const TensorType &tensor)
      : dims(tensor.shape.begin(), tensor.shape.end()), strides(packedStrides(tensor.shape)) {
    if (!call.bshd)
      return;
    std::swap(dims[1], dims[2]);
    std::swap(strides[1], strides[2]);
  }

  std::vector<int64_t> dims, strides;
};

/// Operand `index`, a tensor of heads, as an input.
auto operandOf(FrontendGraph &graph, const AttentionCall &call, std::span<const TensorType> operands, size_t index) {
  const Heads heads(call, operands[index]);
  return graph.input(heads.dims, heads.strides, operands[index].dtype);
}

/// lse [B, H, Q] as cuDNN's [B, H, Q, 1].
std::vector<int64_t> statisticsDims(const AttentionCall &call) { return {call.batch, call.heads, call.queries, 1}; }

/// A mask that is added, of four dimensions.
auto maskOf(FrontendGraph &graph, const TensorType &mask) {
  std::vector<int64_t> dims(4 - mask.shape.size(), 1);
  dims.insert(dims.end(), mask.shape.begin(), mask.shape.end());
  return graph.input(dims, packedStrides(dims), mask.dtype);
}

bool isSupported(const AttentionCall &call) {
  return call.dtype == DType::BF16 && !call.boolMask && call.batch > 0 && call.queries > 0 && call.keys > 0 &&
         call.depth > 0 && call.columns > 0;
}

template <typename Options> void setMasks(Options &options, const AttentionCall &call) {
  options.set_attn_scale(float(call.scale));
  if (call.causal) // key j is hidden from query i where j > i
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
}

} // namespace

std::unique_ptr<CudnnGraph> makeAttentionGraph(const AttentionCall &call, std::span<const TensorType> operands,
                                               int64_t workspaceBytes) {
  if (!isSupported(call))
    return nullptr;
  auto graph = std::make_unique<FrontendGraph>(call.dtype);
  const auto q = operandOf(*graph, call, operands, 0), k = operandOf(*graph, call, operands, 1),
             v = operandOf(*graph, call, operands, 2);
  fe::graph::SDPA_attributes options;
  options.set_generate_stats(true);
  setMasks(options, call);
  if (call.masked)
    options.set_bias(maskOf(*graph, operands[3]));
  const auto [out, statistics] = graph->graph.sdpa(q, k, v, options);
  const Heads heads(call, operands[call.next]);
  graph->output(out, heads.dims, heads.strides, call.dtype);
  graph->output(statistics, statisticsDims(call), packedStrides(statisticsDims(call)), DType::F32);
  if (!graph->build(workspaceBytes, true))
    return nullptr;
  return graph;
}

std::unique_ptr<CudnnGraph> makeAttentionGradGraph(const AttentionCall &call, std::span<const TensorType> operands,
                                                   int64_t workspaceBytes) {
  if (!isSupported(call))
    return nullptr;
  auto graph = std::make_unique<FrontendGraph>(call.dtype);
  const auto dout = operandOf(*graph, call, operands, 0), q = operandOf(*graph, call, operands, 1),
             k = operandOf(*graph, call, operands, 2), v = operandOf(*graph, call, operands, 3);
  fe::graph::SDPA_backward_attributes options;
  options.set_deterministic_algorithm(true);
  setMasks(options, call);
  if (call.masked)
    options.set_bias(maskOf(*graph, operands[4]));
  const auto out = operandOf(*graph, call, operands, call.next);
  const auto statistics = graph->input(statisticsDims(call), packedStrides(statisticsDims(call)), DType::F32);
  const auto gradients = graph->graph.sdpa_backward(q, k, v, out, dout, statistics, options);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Heads heads(call, operands[1 + i]);
    graph->output(gradients[i], heads.dims, heads.strides, call.dtype);
  }
  if (!graph->build(workspaceBytes, true))
    return nullptr;
  return graph;
}

} // namespace ds::kernels::cuda
