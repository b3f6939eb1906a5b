//===- CudnnGraphBuilder.h - builds and runs cudnn-frontend graphs --------===//
#pragma once

#include "core/DType.h"
#include "kernels/cuda/CudnnGraph.h"

#include <cudnn.h>
#include <cudnn_frontend.h>

#include <memory>
#include <vector>

namespace ds::kernels::cuda {

namespace fe = cudnn_frontend;

/// The handle of this thread and its current device, made at first use and kept as long as the thread; null without
/// one.
cudnnHandle_t cudnnHandle();

inline fe::DataType_t cudnnType(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return fe::DataType_t::DOUBLE;
  case DType::BF16:
    return fe::DataType_t::BFLOAT16;
  case DType::F16:
    return fe::DataType_t::HALF;
  default:
    return fe::DataType_t::FLOAT;
  }
}

/// What an engine may do to its factors: nothing; take them for numbers of TF32, which are those of 16 bits and more;
/// or round and transform them.
enum class Factors { Exact, Short, Any };

/// A graph whose tensors have the numbers 1, 2, ... in the order of their addresses.
class FrontendGraph final : public CudnnGraph {
public:
  explicit FrontendGraph(DType dtype) {
    graph.set_io_data_type(cudnnType(dtype))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  /// The next tensor, an input.
  std::shared_ptr<fe::graph::Tensor_attributes> input(const std::vector<int64_t> &dims,
                                                      const std::vector<int64_t> &strides, DType dtype);
  /// The next tensor, `tensor` of the graph made a result.
  void output(const std::shared_ptr<fe::graph::Tensor_attributes> &tensor, const std::vector<int64_t> &dims,
              const std::vector<int64_t> &strides, DType dtype);
  /// Chooses an engine; false where there is none that is deterministic and fits. With `isOrdered` an attribute of the
  /// operation asks for sums in a fixed order, which counts for more than an engine's note.
  bool build(int64_t workspaceBytes, Factors factors, bool isOrdered = false);

  Status enqueue(std::span<void *const> addresses, void *workspace, cudaStream_t stream) noexcept override;

  fe::graph::Graph graph;

private:
  int64_t tensors_ = 0;
};

/// Row-major strides of all dimensions.
std::vector<int64_t> packedStrides(const std::vector<int64_t> &dims);

} // namespace ds::kernels::cuda
