// attention and attention_grad as cuDNN's operations.
#include "kernels/attention/attention_graph.h"
#include "kernels/cuda/CudnnGraphBuilder.h"

namespace ds::kernels::cuda {

namespace {

/// A tensor of heads as cuDNN wants it, [batch, heads, rows, width], and how far apart its elements lie.
struct Heads {
  std::vector<int64_t> dims, strides;
};

Heads headsOf(const AttentionCall &call, const HeadStrides &strides, int64_t heads, int64_t rows, int64_t width) {
  return {{call.batch, heads, rows, width}, {strides.batch, strides.head, strides.row, 1}};
}
Heads qOf(const AttentionCall &call) { return headsOf(call, call.q, call.heads, call.queries, call.depth); }
Heads kOf(const AttentionCall &call) { return headsOf(call, call.k, call.groups, call.keys, call.depth); }
Heads vOf(const AttentionCall &call) { return headsOf(call, call.v, call.groups, call.keys, call.columns); }
Heads outOf(const AttentionCall &call) { return headsOf(call, call.out, call.heads, call.queries, call.columns); }

/// The next tensor, an input.
auto inputOf(FrontendGraph &graph, const AttentionCall &call, const Heads &heads) {
  return graph.input(heads.dims, heads.strides, call.dtype);
}

/// lse [B, H, Q] as cuDNN's [B, H, Q, 1].
std::vector<int64_t> statisticsDims(const AttentionCall &call) { return {call.batch, call.heads, call.queries, 1}; }

/// A mask that is added, of four dimensions.
auto maskOf(FrontendGraph &graph, const AttentionCall &call) {
  std::vector<int64_t> dims = {call.batch, call.heads, call.queries, call.keys};
  for (size_t d = 0; d < dims.size(); ++d)
    if (call.maskStrides[d] == 0) // broadcast
      dims[d] = 1;
  return graph.input(dims, packedStrides(dims), call.dtype);
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

std::unique_ptr<CudnnGraph> makeAttentionGraph(const AttentionCall &call, int64_t workspaceBytes) {
  if (!isSupported(call))
    return nullptr;
  auto graph = std::make_unique<FrontendGraph>(call.dtype);
  const auto q = inputOf(*graph, call, qOf(call)), k = inputOf(*graph, call, kOf(call)),
             v = inputOf(*graph, call, vOf(call));
  fe::graph::SDPA_attributes options;
  options.set_generate_stats(true);
  setMasks(options, call);
  if (call.masked)
    options.set_bias(maskOf(*graph, call));
  const auto [out, statistics] = graph->graph.sdpa(q, k, v, options);
  const Heads heads = outOf(call);
  graph->output(out, heads.dims, heads.strides, call.dtype);
  graph->output(statistics, statisticsDims(call), packedStrides(statisticsDims(call)), DType::F32);
  if (!graph->build(workspaceBytes, true))
    return nullptr;
  return graph;
}

std::unique_ptr<CudnnGraph> makeAttentionGradGraph(const AttentionCall &call, int64_t workspaceBytes) {
  if (!isSupported(call))
    return nullptr;
  auto graph = std::make_unique<FrontendGraph>(call.dtype);
  const auto dout = inputOf(*graph, call, outOf(call)), q = inputOf(*graph, call, qOf(call)),
             k = inputOf(*graph, call, kOf(call)), v = inputOf(*graph, call, vOf(call));
  fe::graph::SDPA_backward_attributes options;
  options.set_deterministic_algorithm(true);
  setMasks(options, call);
  if (call.masked)
    options.set_bias(maskOf(*graph, call));
  const auto out = inputOf(*graph, call, outOf(call));
  const auto statistics = graph->input(statisticsDims(call), packedStrides(statisticsDims(call)), DType::F32);
  const auto gradients = graph->graph.sdpa_backward(q, k, v, out, dout, statistics, options);
  const Heads heads[] = {qOf(call), kOf(call), vOf(call)};
  for (size_t i = 0; i < gradients.size(); ++i)
    graph->output(gradients[i], heads[i].dims, heads[i].strides, call.dtype);
  if (!graph->build(workspaceBytes, true))
    return nullptr;
  return graph;
}

} // namespace ds::kernels::cuda
