// Convolutions as cuDNN's operations.
#include "kernels/conv/conv_graph.h"
#include "kernels/cuda/CudnnGraphBuilder.h"

namespace ds::kernels::cuda {

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
