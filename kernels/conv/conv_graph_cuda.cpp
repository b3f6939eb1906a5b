// Convolutions as cuDNN's operations.
#include "kernels/conv/conv_graph.h"
#include "kernels/conv/conv_widened.h"
#include "kernels/conv/plain_conv.h"
#include "kernels/cuda/CudnnGraphBuilder.h"

#include <array>
#include <utility>

namespace ds::kernels::cuda {

namespace {

std::unique_ptr<CudnnGraph> graphOf(const ConvPlan &plan, int64_t workspaceBytes, Factors factors) {
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
  if (!graph->build(workspaceBytes, factors))
    return nullptr;
  return graph;
}

/// A weight's gradient in float32 from 16 bits, for which cuDNN's pre-compiled engines know one type: of float32
/// copies of dy and x, at the beginning of the workspace.
class WidenedGrad final : public CudnnGraph {
public:
  WidenedGrad(std::unique_ptr<CudnnGraph> wide, const ConvPlan &plan)
      : wide_(std::move(wide)), type_(plan.x.dtype), elements_{elementCount(plan.y.dims), elementCount(plan.x.dims)} {}

  Status enqueue(std::span<void *const> addresses, void *workspace, cudaStream_t stream) noexcept override {
    std::array<void *, 3> operands = {nullptr, nullptr, addresses[2]};
    auto *next = static_cast<std::byte *>(workspace);
    for (size_t i = 0; i < elements_.size(); ++i) {
      operands[i] = next;
      enqueueWidened(type_, addresses[i], static_cast<float *>(operands[i]), elements_[i], stream);
      next += widenedBytes(elements_[i]);
    }
    return wide_->enqueue(operands, next, stream);
  }

private:
  std::unique_ptr<CudnnGraph> wide_;
  DType type_;
  std::array<int64_t, 2> elements_; ///< of dy and x
};

} // namespace

std::unique_ptr<CudnnGraph> makeConvGraph(const ConvPlan &plan, int64_t workspaceBytes) {
  if (plan.empty || plan.x.dtype == DType::F64)
    return nullptr;
  if (auto graph = graphOf(plan, workspaceBytes, plan.x.dtype == DType::F32 ? Factors::Exact : Factors::Any))
    return graph;
  const int64_t left =
      workspaceBytes - widenedBytes(elementCount(plan.y.dims)) - widenedBytes(elementCount(plan.x.dims));
  if (plan.kind != ConvKind::WeightGrad || plan.w.dtype == plan.x.dtype || left < 0)
    return nullptr;
  ConvPlan wide = plan;
  wide.x.dtype = wide.y.dtype = DType::F32;
  auto graph = graphOf(wide, left, Factors::Short);
  return graph ? std::make_unique<WidenedGrad>(std::move(graph), plan) : nullptr;
}

} // namespace ds::kernels::cuda
