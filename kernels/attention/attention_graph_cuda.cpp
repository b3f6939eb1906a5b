// attention and attention_grad as cuDNN's operations.
#include "kernels/attention/attention_graph.h"
#include "kernels/cuda/CudnnGraphBuilder.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

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

/// A mask that is added, of four dimensions. By cuDNN's page a bias may be broadcast over batches and heads alone, so
/// one that is broadcast over queries has a row for each, all at one place, as PyTorch has it.
auto maskOf(FrontendGraph &graph, const AttentionCall &call) {
  std::vector<int64_t> dims = {call.batch, call.heads, call.queries, call.keys};
  for (const size_t d : {0, 1, 3})
    if (call.maskStrides[d] == 0) // broadcast
      dims[d] = 1;
  std::vector<int64_t> strides = packedStrides(dims);
  for (size_t d = 0; d < dims.size(); ++d)
    if (call.maskStrides[d] != 0 || d == 2) // of a chunk of heads as of all
      strides[d] = call.maskStrides[d];
  return graph.input(dims, strides, call.dtype);
}

bool isSupported(const AttentionCall &call) {
  return isNarrowFloat(call.dtype) && !call.boolMask && call.batch > 0 && call.queries > 0 && call.keys > 0 &&
         call.depth > 0 && call.columns > 0;
}

template <typename Options> void setMasks(Options &options, const AttentionCall &call) {
  options.set_attn_scale(float(call.scale));
  if (call.causal) // key j is hidden from query i where j > i
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
}

/// The gradient of a chunk of heads, once for each.
class ChunkedGrad final : public CudnnGraph {
public:
  /// `one` is the graph of `chunk` of `call`.
  ChunkedGrad(std::unique_ptr<CudnnGraph> one, const AttentionCall &call, const HeadChunk &chunk)
      : one_(std::move(one)), call_(call), chunk_(chunk) {}

  Status enqueue(std::span<void *const> addresses, void *workspace, cudaStream_t stream) noexcept override {
    for (int64_t batch = 0; batch < call_.batch; batch += chunk_.batches)
      for (int64_t group = 0; group < call_.groups; group += chunk_.groups)
        if (Status status = enqueueFrom(batch, group, addresses, workspace, stream); !status.ok())
          return status;
    return Status::success();
  }

private:
  /// Where a chunk begins in each operand of makeAttentionGradGraph.
  struct Starts {
    Starts(const AttentionCall &call, int64_t batch, int64_t group) {
      const int64_t head = group * (call.heads / call.groups), half = byteSize(call.dtype);
      const auto at = [&](const HeadStrides &strides, int64_t index) {
        return half * (batch * strides.batch + index * strides.head);
      };
      const int64_t q = at(call.q, head), k = at(call.k, group), v = at(call.v, group), out = at(call.out, head);
      const int64_t mask = half * (batch * call.maskStrides[0] + head * call.maskStrides[1]);
      const int64_t lse = byteSize(DType::F32) * (batch * call.heads + head) * call.queries;
      if (call.masked)
        bytes = {out, q, k, v, mask, out, lse, q, k, v};
      else
        bytes = {out, q, k, v, out, lse, q, k, v, 0};
    }
    std::array<int64_t, 10> bytes;
  };

  Status enqueueFrom(int64_t batch, int64_t group, std::span<void *const> addresses, void *workspace,
                     cudaStream_t stream) noexcept {
    const Starts starts(call_, batch, group);
    std::array<void *, 10> here{};
    for (size_t i = 0; i < addresses.size(); ++i)
      here[i] = static_cast<std::byte *>(addresses[i]) + starts.bytes[i];
    return one_->enqueue(std::span(here).first(addresses.size()), workspace, stream);
  }

  std::unique_ptr<CudnnGraph> one_;
  AttentionCall call_;
  HeadChunk chunk_;
};

std::unique_ptr<FrontendGraph> graphOf(const AttentionCall &call, fe::AttentionImplementation_t implementation) {
  auto graph = std::make_unique<FrontendGraph>(call.dtype);
  const auto q = inputOf(*graph, call, qOf(call)), k = inputOf(*graph, call, kOf(call)),
             v = inputOf(*graph, call, vOf(call));
  fe::graph::SDPA_attributes options;
  options.set_generate_stats(true).set_implementation(implementation);
  setMasks(options, call);
  if (call.masked)
    options.set_bias(maskOf(*graph, call));
  const auto [out, statistics] = graph->graph.sdpa(q, k, v, options);
  const Heads heads = outOf(call);
  graph->output(out, heads.dims, heads.strides, call.dtype);
  graph->output(statistics, statisticsDims(call), packedStrides(statisticsDims(call)), DType::F32);
  return graph;
}

std::unique_ptr<FrontendGraph> gradGraphOf(const AttentionCall &call) {
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
  return graph;
}

} // namespace

std::unique_ptr<CudnnGraph> makeAttentionGraph(const AttentionCall &call, int64_t workspaceBytes) {
  if (!isSupported(call))
    return nullptr;
  // What the frontend takes by itself may be an engine that this cuDNN does not have.
  for (const auto implementation : {fe::AttentionImplementation_t::AUTO, fe::AttentionImplementation_t::COMPOSITE})
    if (auto graph = graphOf(call, implementation); graph->build(workspaceBytes, Factors::Any))
      return graph;
  return nullptr;
}

std::unique_ptr<CudnnGraph> makeAttentionGradGraph(const AttentionCall &call, const HeadChunk &chunk,
                                                   int64_t workspaceBytes) {
  if (!isSupported(call))
    return nullptr;
  AttentionCall part = call;
  part.batch = chunk.batches, part.groups = chunk.groups, part.heads = chunk.groups * (call.heads / call.groups);
  const std::span<const int64_t> mask = call.maskStrides;
  if (chunk.batches == 0 || !isAligned(chunk, {call.batch, call.groups}, call.heads / call.groups, call.queries,
                                       call.masked ? mask : mask.first(0)))
    return nullptr;
  for (const bool isOrdered : {false, true}) // engines may be noted nondeterministic for what they do without order
    if (auto graph = gradGraphOf(part); graph->build(workspaceBytes, Factors::Any, isOrdered)) {
      if (part.batch == call.batch && part.groups == call.groups)
        return graph;
      return std::make_unique<ChunkedGrad>(std::move(graph), call, chunk);
    }
  return nullptr;
}

} // namespace ds::kernels::cuda
