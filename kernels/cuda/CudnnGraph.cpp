#include "kernels/cuda/CudnnGraph.h"

#include "kernels/cuda/CudnnGraphBuilder.h"

#include <map>
#include <unordered_map>

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

bool FrontendGraph::build(int64_t workspaceBytes, Factors factors, bool isOrdered) {
  const cudnnHandle_t handle = cudnnHandle();
  if (!handle || graph.validate().is_bad() || graph.build_operation_graph(handle).is_bad() ||
      graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_bad())
    return false;
  if (!isOrdered)
    graph.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  if (factors == Factors::Exact)
    graph.deselect_numeric_notes({fe::NumericalNote_t::TENSOR_CORE});
  if (factors != Factors::Any) // conversion is to float16
    graph.deselect_numeric_notes(
        {fe::NumericalNote_t::DOWN_CONVERT_INPUTS, fe::NumericalNote_t::WINOGRAD, fe::NumericalNote_t::FFT});
  graph.deselect_workspace_greater_than(workspaceBytes);
  int64_t needed = 0;
  return graph.check_support().is_good() && graph.build_plans().is_good() &&
         graph.get_workspace_size(needed).is_good() && needed <= workspaceBytes;
}

Status FrontendGraph::enqueue(std::span<void *const> addresses, void *workspace, cudaStream_t stream) noexcept {
  const cudnnHandle_t handle = cudnnHandle();
  if (!handle || cudnnSetStream(handle, stream) != CUDNN_STATUS_SUCCESS)
    return Status::failure("cuDNN: no handle for the stream");
  static thread_local std::unordered_map<int64_t, void *> byNumber; // kernels of several ranks may share the graph
  byNumber.clear();
  for (size_t i = 0; i < addresses.size(); ++i)
    byNumber[int64_t(i) + 1] = addresses[i];
  try {
    fe::error_t error = graph.execute(handle, byNumber, workspace);
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

} // namespace ds::kernels::cuda
