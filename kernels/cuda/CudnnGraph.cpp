#include "kernels/cuda/CudnnGraph.h"

#include "kernels/cuda/CudnnGraphBuilder.h"

#include <map>

namespace ds::kernels::cuda {

namespace {

/// Ends with its thread.
struct Handles {
  ~Handles() {
    for (auto &[device, handle] : byDevice)
      cudnnDestroy(handle);
  }
  std::map<int, cudnnHandle_t> byDevice;
};

} // namespace

cudnnHandle_t cudnnHandle() {
  static thread_local Handles handles;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess)
    return nullptr;
  cudnnHandle_t &handle = handles.byDevice[device];
  if (!handle && cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS)
    handle = nullptr;
  return handle;
}

std::shared_ptr<fe::graph::Tensor_attributes> FrontendGraph::input(const std::vector<int64_t> &dims,
                                                                   const std::vector<int64_t> &strides, DType dtype) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_dim(dims)
                          .set_stride(strides)
                          .set_data_type(cudnnType(dtype))
                          .set_uid(++tensors_));
}

void FrontendGraph::output(const std::shared_ptr<fe::graph::Tensor_attributes> &tensor,
                           const std::vector<int64_t> &dims, const std::vector<int64_t> &strides, DType dtype) {
  tensor->set_output(true).set_dim(dims).set_stride(strides).set_data_type(cudnnType(dtype)).set_uid(++tensors_);
}

bool FrontendGraph::build(int64_t workspaceBytes, bool rounds) {
  const cudnnHandle_t handle = cudnnHandle();
  if (!handle || graph.validate().is_bad() || graph.build_operation_graph(handle).is_bad() ||
      graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_bad())
    return false;
  graph.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  if (!rounds)
    graph.deselect_numeric_notes({fe::NumericalNote_t::TENSOR_CORE, fe::NumericalNote_t::DOWN_CONVERT_INPUTS});
  graph.deselect_workspace_greater_than(workspaceBytes);
  int64_t needed = 0;
  return graph.check_support().is_good() && graph.build_plans().is_good() &&
         graph.get_workspace_size(needed).is_good() && needed <= workspaceBytes;
}

Status FrontendGraph::enqueue(std::span<void *const> addresses, void *workspace, cudaStream_t stream) noexcept {
  const cudnnHandle_t handle = cudnnHandle();
  if (!handle || cudnnSetStream(handle, stream) != CUDNN_STATUS_SUCCESS)
    return Status::failure("cuDNN: no handle for the stream");
  for (size_t i = 0; i < addresses.size(); ++i)
    byNumber_[int64_t(i) + 1] = addresses[i];
  try {
    fe::error_t error = graph.execute(handle, byNumber_, workspace);
    return error.is_good() ? Status::success() : Status::failure("cuDNN: %s", error.get_message().c_str());
  } catch (const std::exception &error) {
    return Status::failure("cuDNN: %s", error.what());
  }
}

std::vector<int64_t> packedStrides(const std::vector<int64_t> &dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= dims[d];
  }
  return strides;
}

namespace {

/// Operand `index` as an input.
auto operandOf(FrontendGraph &graph, std::span<const TensorType> operands, size_t index) {
  return graph.input(operands[index].shape, packedStrides(operands[index].shape), operands[index].dtype);
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
  const auto q = operandOf(*graph, operands, 0), k = operandOf(*graph, operands, 1), v = operandOf(*graph, operands, 2);
  fe::graph::SDPA_attributes options;
  options.set_generate_stats(true);
  setMasks(options, call);
  if (call.masked)
    options.set_bias(maskOf(*graph, operands[3]));
  const auto [out, statistics] = graph->graph.sdpa(q, k, v, options);
  const Shape &shape = operands[call.next].shape;
  graph->output(out, shape, packedStrides(shape), call.dtype);
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
  const auto dout = operandOf(*graph, operands, 0), q = operandOf(*graph, operands, 1),
             k = operandOf(*graph, operands, 2), v = operandOf(*graph, operands, 3);
  fe::graph::SDPA_backward_attributes options;
  options.set_deterministic_algorithm(true);
  setMasks(options, call);
  if (call.masked)
    options.set_bias(maskOf(*graph, operands[4]));
  const auto out = operandOf(*graph, operands, call.next);
  const auto statistics = graph->input(statisticsDims(call), packedStrides(statisticsDims(call)), DType::F32);
  const auto gradients = graph->graph.sdpa_backward(q, k, v, out, dout, statistics, options);
  for (size_t i = 0; i < gradients.size(); ++i)
    graph->output(gradients[i], operands[1 + i].shape, packedStrides(operands[1 + i].shape), call.dtype);
  if (!graph->build(workspaceBytes, true))
    return nullptr;
  return graph;
}

std::unique_ptr<CudnnGraph> makeConvGraph(const ConvPlan &plan, int64_t workspaceBytes) {
  if (plan.empty || plan.x.dtype == DType::F64)
    return nullptr;
  auto graph = std::make_unique<FrontendGraph>(plan.x.dtype);
  const auto inputOf = [&](const ConvTensor &tensor) {
    return graph->input(tensor.dims, tensor.strides, tensor.dtype);
  };
  const auto describe = [&](auto options) {
    options.set_pre_padding(plan.before).set_post_padding(plan.after).set_stride(plan.strides);
    return options.set_dilation(plan.dilations);
  };
  std::shared_ptr<fe::graph::Tensor_attributes> result;
  const ConvTensor *type = &plan.y;
  if (plan.kind == ConvKind::Forward) {
    const auto x = inputOf(plan.x), w = inputOf(plan.w);
    result = graph->graph.conv_fprop(x, w, describe(fe::graph::Conv_fprop_attributes()));
  } else if (plan.kind == ConvKind::InputGrad) {
    const auto dy = inputOf(plan.y), w = inputOf(plan.w);
    result = graph->graph.conv_dgrad(dy, w, describe(fe::graph::Conv_dgrad_attributes()));
    type = &plan.x;
  } else {
    const auto dy = inputOf(plan.y), x = inputOf(plan.x);
    result = graph->graph.conv_wgrad(dy, x, describe(fe::graph::Conv_wgrad_attributes()));
    type = &plan.w;
  }
  graph->output(result, type->dims, type->strides, type->dtype);
  if (!graph->build(workspaceBytes, plan.x.dtype != DType::F32))
    return nullptr;
  return graph;
}

} // namespace ds::kernels::cuda
