//===- cudnn_frontend.h - what our kernels need of cuDNN, on a host -------===//
//
// Stands in for NVIDIA's header of this name: graphs of one operation, attention or a convolution, and the engines that
// run it. FakeCudnn.cpp refuses what NVIDIA's pages and header refuse, FakeCudnnMath.cpp computes. DS_FAKE_CUDNN=0: no
// graph has an engine; DS_FAKE_CUDNN_UNIFIED=0: not the one that the header takes for attention without mask;
// DS_FAKE_CUDNN_NOTED=1: ordered gradients of attention are noted nondeterministic, too. https://docs.nvidia.com/cudnn,
// "Graphs" and "Attention".
//
//===----------------------------------------------------------------------===//
#pragma once

#include "test/shim/cudnn.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace cudnn_frontend {

enum class DataType_t { NOT_SET, FLOAT, DOUBLE, HALF, BFLOAT16 };
enum class HeurMode_t { A, FALLBACK };
enum class NumericalNote_t { TENSOR_CORE, DOWN_CONVERT_INPUTS, FFT, NONDETERMINISTIC, WINOGRAD };
enum class DiagonalAlignment_t { TOP_LEFT };
enum class AttentionImplementation_t { AUTO, COMPOSITE, UNIFIED };

/// Good where the sentence is empty.
struct error_t {
  bool is_good() const { return sentence.empty(); }
  bool is_bad() const { return !is_good(); }
  std::string get_message() const { return sentence; }
  std::string sentence;
};

namespace graph {

using Numbers = std::vector<int64_t>;

struct Tensor_attributes {
  Tensor_attributes &set_dim(const Numbers &value) { return dim = value, *this; }
  Tensor_attributes &set_stride(const Numbers &value) { return stride = value, *this; }
  Tensor_attributes &set_data_type(DataType_t value) { return type = value, *this; }
  Tensor_attributes &set_uid(int64_t value) { return uid = value, *this; }
  Tensor_attributes &set_output(bool value) { return isOutput = value, *this; }

  Numbers dim, stride; ///< elements
  DataType_t type = DataType_t::NOT_SET;
  std::optional<int64_t> uid;
  bool isOutput = false;
};
using Tensor = std::shared_ptr<Tensor_attributes>;

struct AttentionOptions {
  float scale = 1;
  std::optional<int64_t> rightBound; ///< key j is hidden from query i where j > i + bound
  Tensor bias;
  bool hasStatistics = false, isDeterministic = false;
  AttentionImplementation_t implementation = AttentionImplementation_t::AUTO;
};
template <typename Self> struct AttentionSetters : AttentionOptions {
  Self &set_attn_scale(float value) { return scale = value, self(); }
  Self &set_diagonal_alignment(DiagonalAlignment_t) { return self(); }
  Self &set_diagonal_band_right_bound(int64_t value) { return rightBound = value, self(); }
  Self &set_bias(const Tensor &value) { return bias = value, self(); }
  Self &self() { return static_cast<Self &>(*this); }
};
struct SDPA_attributes : AttentionSetters<SDPA_attributes> {
  SDPA_attributes &set_generate_stats(bool value) { return hasStatistics = value, *this; }
  SDPA_attributes &set_implementation(AttentionImplementation_t value) { return implementation = value, *this; }
};
struct SDPA_backward_attributes : AttentionSetters<SDPA_backward_attributes> {
  SDPA_backward_attributes &set_deterministic_algorithm(bool value) { return isDeterministic = value, *this; }
};

struct ConvOptions {
  Numbers before, after, stride, dilation; ///< of the spatial dimensions
};
template <typename Self> struct ConvSetters : ConvOptions {
  Self &set_pre_padding(const Numbers &value) { return before = value, self(); }
  Self &set_post_padding(const Numbers &value) { return after = value, self(); }
  Self &set_stride(const Numbers &value) { return stride = value, self(); }
  Self &set_dilation(const Numbers &value) { return dilation = value, self(); }
  Self &self() { return static_cast<Self &>(*this); }
};
struct Conv_fprop_attributes : ConvSetters<Conv_fprop_attributes> {};
struct Conv_dgrad_attributes : ConvSetters<Conv_dgrad_attributes> {};
struct Conv_wgrad_attributes : ConvSetters<Conv_wgrad_attributes> {};

/// The one operation of a graph. Tensors by their names: q, k, v, bias, o, stats, do, dq, dk, dv; or x, w, y, of which
/// a gradient has the name of what it is the gradient of.
struct Operation {
  std::string name; ///< of the builder: "sdpa"
  std::map<std::string, Tensor> tensors{};
  std::vector<std::string> results{};
  AttentionOptions attention{};
  ConvOptions conv{};

  bool has(const std::string &tensor) const { return tensors.contains(tensor); }
  const Tensor_attributes &at(const std::string &tensor) const { return *tensors.at(tensor); }
};

struct Engine {
  HeurMode_t mode;
  std::vector<NumericalNote_t> notes;
  int64_t workspaceBytes = 0;
  int precision = 24; ///< bits of the factors
  bool isBarred = false;
};

class Graph {
public:
  Graph &set_io_data_type(DataType_t) { return *this; }
  Graph &set_intermediate_data_type(DataType_t value) { return intermediate_ = value, *this; }
  Graph &set_compute_data_type(DataType_t value) { return compute_ = value, *this; }

  Tensor tensor(const Tensor_attributes &value) { return std::make_shared<Tensor_attributes>(value); }
  /// o and, with statistics, the logarithms of the sums.
  std::array<Tensor, 2> sdpa(const Tensor &q, const Tensor &k, const Tensor &v, const SDPA_attributes &options);
  /// dq, dk, dv.
  std::array<Tensor, 3> sdpa_backward(const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &o,
                                      const Tensor &gradient, const Tensor &stats,
                                      const SDPA_backward_attributes &options);
  Tensor conv_fprop(const Tensor &x, const Tensor &w, const Conv_fprop_attributes &options);
  Tensor conv_dgrad(const Tensor &dy, const Tensor &w, const Conv_dgrad_attributes &options);
  Tensor conv_wgrad(const Tensor &dy, const Tensor &x, const Conv_wgrad_attributes &options);

  // In this order.
  error_t validate();
  error_t build_operation_graph(cudnnHandle_t handle);
  error_t create_execution_plans(const std::vector<HeurMode_t> &modes);
  Graph &deselect_numeric_notes(const std::vector<NumericalNote_t> &notes);
  Graph &deselect_workspace_greater_than(int64_t bytes);
  error_t check_support();
  error_t build_plans();
  error_t get_workspace_size(int64_t &bytes) const;
  error_t execute(cudnnHandle_t handle, std::unordered_map<int64_t, void *> &addresses, void *workspace) const;

private:
  Tensor add(const char *name, std::map<std::string, Tensor> tensors, std::vector<std::string> results);
  const Engine *chosen() const;

  DataType_t intermediate_ = DataType_t::NOT_SET, compute_ = DataType_t::NOT_SET;
  std::shared_ptr<Operation> operation_;
  bool isValid_ = false, isBuilt_ = false;
  int device_ = -1;
  std::vector<Engine> engines_; ///< the fastest first
  int64_t mostWorkspace_ = INT64_MAX;
};

/// Computes on the host; tensors are in memory of the given addresses.
void compute(const Operation &operation, const std::map<std::string, void *> &addresses, const Engine &engine);

} // namespace graph

} // namespace cudnn_frontend

namespace shim {

/// How often each operation has run, by the name of its builder.
const std::map<std::string, int64_t> &cudnnRuns();

} // namespace shim
