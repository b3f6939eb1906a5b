//===- FakeCudnn.cpp - which graphs have an engine, and their runs --------===//
//
// Refuses what NVIDIA's pages ("Attention" and "Graphs" of docs.nvidia.com/cudnn) and the checks of cudnn-frontend 1.16
// refuse on Hopper. Where those leave a choice:
//   - Engines of mode A are the pre-compiled ones. "Graphs" says they do what the legacy functions do. Those know one
//     type for x, w and y, and one padding for both sides of a dimension. (Generic engines would make a float32
//     gradient from bfloat16, but want channels innermost, which we have not; so they are left out.)
//   - The engine of mode FALLBACK is "functional" by the same page: it takes other padding behind than before, too.
//   - A bias has the dimensions of the table of "Attention": only batches and heads may be broadcast.
//
//===----------------------------------------------------------------------===//
#include "test/shim/Machine.h"
#include "test/shim/Streams.h"
#include "test/shim/cudnn_frontend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

struct FakeCudnnHandle {
  int device;
  cudaStream_t stream = nullptr;
};

namespace {

std::map<std::string, int64_t> runs;

} // namespace

const std::map<std::string, int64_t> &shim::cudnnRuns() { return runs; }

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  const std::lock_guard lock(shim::runtime().mutex);
  if (shim::unsafe("cudnnCreate") != cudaSuccess) // it allocates
    return CUDNN_STATUS_INTERNAL_ERROR;
  *handle = new FakeCudnnHandle{shim::currentDevice()};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  const std::lock_guard lock(shim::runtime().mutex);
  if (handle == nullptr || (stream != nullptr && !shim::isLive(stream)))
    return CUDNN_STATUS_BAD_PARAM;
  if (stream != nullptr && stream->device != handle->device)
    return CUDNN_STATUS_MAPPING_ERROR;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

namespace cudnn_frontend::graph {

namespace {

constexpr int64_t engineWorkspace = 4096;
constexpr uintptr_t alignment = 16; ///< what the header assumes of every tensor

int64_t bytesOf(DataType_t type) { return type == DataType_t::DOUBLE ? 8 : type == DataType_t::FLOAT ? 4 : 2; }

bool isHalf(DataType_t type) { return type == DataType_t::HALF || type == DataType_t::BFLOAT16; }

bool isAttention(const Operation &op) { return op.name.starts_with("sdpa"); }

std::string refuseTensor(const std::string &name, const Tensor_attributes &tensor, bool isResult) {
  if (tensor.dim.empty() || tensor.dim.size() != tensor.stride.size())
    return name + " has not a stride for each dimension";
  if (std::ranges::any_of(tensor.dim, [](int64_t size) { return size <= 0; }))
    return name + " has no elements";
  if (tensor.type == DataType_t::NOT_SET || !tensor.uid)
    return name + " has no type or no number";
  return isResult && !tensor.isOutput ? name + " is no output" : "";
}

/// Types, dimensions and strides: the tables of "Attention".
std::string refuseHeads(const Operation &op) {
  const Numbers &q = op.at("q").dim, &k = op.at("k").dim, &v = op.at("v").dim;
  for (const auto &[name, tensor] : op.tensors)
    if (tensor->dim.size() != 4)
      return name + " has not four dimensions";
  const std::map<std::string, Numbers> wanted = {{"q", {q[0], q[1], q[2], q[3]}},
                                                 {"k", {q[0], k[1], k[2], q[3]}},
                                                 {"v", {q[0], v[1], k[2], v[3]}},
                                                 {"o", {q[0], q[1], q[2], v[3]}},
                                                 {"do", {q[0], q[1], q[2], v[3]}},
                                                 {"stats", {q[0], q[1], q[2], 1}},
                                                 {"dq", q},
                                                 {"dk", k},
                                                 {"dv", v}};
  for (const auto &[name, tensor] : op.tensors) {
    if (const auto found = wanted.find(name); found != wanted.end() && tensor->dim != found->second)
      return name + " has other dimensions than q, k and v ask for";
    if (name == "stats" && tensor->type != DataType_t::FLOAT)
      return "stats are not of float32";
    if (name != "stats" && !isHalf(tensor->type))
      return name + " is not of a 16-bit type";
    if (name != "stats" && tensor->type != op.at("q").type)
      return name + " is not of q's type";
    if (name != "bias" && tensor->stride[3] != 1)
      return name + " has a last stride other than 1";
  }
  return q[1] % k[1] != 0 || q[1] % v[1] != 0 ? "heads of k or v do not divide those of q" : "";
}

std::string refuseAttention(const Operation &op) {
  if (std::string why = refuseHeads(op); !why.empty())
    return why;
  const Numbers &q = op.at("q").dim;
  const int64_t keys = op.at("k").dim[2], depth = q[3], columns = op.at("v").dim[3];
  if (depth % 8 != 0 || columns % 8 != 0 || depth > 256 || columns > 256)
    return "a head's size is no multiple of 8 or above 256";
  const bool isForward = op.name == "sdpa";
  if (isForward && depth != columns && (depth != 192 || columns != 128)) // note 5 of the table
    return "heads of q and v differ in size";
  if (!isForward && q[2] == 1 && keys == 1)
    return "a gradient of one query and one key";
  if (op.attention.rightBound && *op.attention.rightBound < 0)
    return "a right bound below 0";
  if (!op.has("bias"))
    return "";
  const Numbers &bias = op.at("bias").dim;
  const bool fits = (bias[0] == 1 || bias[0] == q[0]) && (bias[1] == 1 || bias[1] == q[1]);
  return fits && bias[2] == q[2] && bias[3] == keys ? "" : "a bias is not [B or 1, H or 1, queries, keys]";
}

std::string refuseConv(const Operation &op) {
  const Tensor_attributes &x = op.at("x"), &w = op.at("w"), &y = op.at("y");
  const ConvOptions &conv = op.conv;
  const size_t spatial = x.dim.size() - 2;
  if (x.dim.size() < 4 || x.dim.size() > 5 || w.dim.size() != x.dim.size() || y.dim.size() != x.dim.size())
    return "a convolution has two or three spatial dimensions";
  for (const Numbers *numbers : {&conv.before, &conv.after, &conv.stride, &conv.dilation})
    if (numbers->size() != spatial)
      return "padding, strides or dilations are not set for each spatial dimension";
  if (x.type != w.type || x.type != y.type || (x.type != DataType_t::FLOAT && !isHalf(x.type)))
    return "x, w and y are not of one type, float32 or of 16 bits";
  if (x.dim[1] % w.dim[1] != 0 || w.dim[0] % (x.dim[1] / w.dim[1]) != 0 || y.dim[0] != x.dim[0] || y.dim[1] != w.dim[0])
    return "channels of x, w and y do not fit";
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t room = x.dim[2 + d] + conv.before[d] + conv.after[d] - conv.dilation[d] * (w.dim[2 + d] - 1) - 1;
    if (room < 0 || room / conv.stride[d] + 1 != y.dim[2 + d])
      return "y has another size than x, w and padding give";
  }
  return "";
}

/// What the header itself takes of a gradient's workspace: a sum for each query.
int64_t frontendWorkspace(const Operation &op) {
  const Numbers &q = op.at(isAttention(op) ? "q" : "x").dim;
  return op.name == "sdpa_backward" ? 4 * q[0] * q[1] * q[2] : 0;
}

/// dK and dV of every head where heads share k or v; then the scores' gradients for sums in a fixed order, below cuDNN
/// 9.25 on Hopper, or sums of dQ.
Engine attentionGradEngine(const Operation &op) {
  const Numbers &q = op.at("q").dim, &k = op.at("k").dim, &v = op.at("v").dim;
  const auto padded = [](int64_t length) { return (length + 63) / 64 * 64; };
  const int64_t heads = q[0] * q[1];
  const int64_t shared = (k[1] != q[1] ? 2 * heads * k[2] * q[3] : 0) + (v[1] != q[1] ? 2 * heads * k[2] * v[3] : 0);
  if (op.attention.isDeterministic) {
    const int64_t ordered = shared + 2 * heads * padded(q[2]) * padded(k[2]);
    const bool isNoted = shim::numberOf("DS_FAKE_CUDNN_NOTED", 0) != 0;
    return {HeurMode_t::A, {isNoted ? NumericalNote_t::NONDETERMINISTIC : NumericalNote_t::TENSOR_CORE}, ordered};
  }
  return {HeurMode_t::A,
          {NumericalNote_t::TENSOR_CORE, NumericalNote_t::NONDETERMINISTIC},
          shared + 4 * heads * q[2] * q[3]};
}

/// The header's choice, where nobody says one, is the unified engine for attention without mask.
std::vector<Engine> attentionEngines(const AttentionOptions &options) {
  const bool isPlain = !options.rightBound && !options.bias;
  const bool isUnified = options.implementation == AttentionImplementation_t::UNIFIED ||
                         (options.implementation == AttentionImplementation_t::AUTO && isPlain);
  if (isUnified && shim::numberOf("DS_FAKE_CUDNN_UNIFIED", 1) == 0)
    return {};
  return {Engine{HeurMode_t::A, {}}};
}

/// The fastest first: those that round float32 or transform it, and the legacy gradients' algorithm 0, which adds in
/// any order.
std::vector<Engine> convEngines(const Operation &op) {
  using Note = NumericalNote_t;
  std::vector<Engine> engines;
  if (op.conv.before == op.conv.after) {
    const bool isFloat = op.at("x").type == DataType_t::FLOAT;
    if (isFloat) { // float16, and TF32
      engines.push_back({HeurMode_t::A, {Note::TENSOR_CORE, Note::DOWN_CONVERT_INPUTS}, engineWorkspace, 11});
      engines.push_back({HeurMode_t::A, {Note::TENSOR_CORE}, engineWorkspace, 11});
    }
    if (op.name != "conv_fprop")
      engines.push_back({HeurMode_t::A, {Note::NONDETERMINISTIC}, 0});
    if (isFloat)
      for (Note note : {Note::WINOGRAD, Note::FFT})
        engines.push_back({HeurMode_t::A, {note}, engineWorkspace, 17});
    engines.push_back({HeurMode_t::A, isFloat ? std::vector<Note>{} : std::vector{Note::TENSOR_CORE}, engineWorkspace});
  }
  engines.push_back({HeurMode_t::FALLBACK, {}, 0});
  return engines;
}

/// Whether all that a tensor may touch is of one allocation.
bool isUsable(const Tensor_attributes &tensor, const void *address) {
  int64_t last = 0;
  for (size_t d = 0; d < tensor.dim.size(); ++d)
    last += (tensor.dim[d] - 1) * tensor.stride[d];
  return shim::isUsable(address, size_t((last + 1) * bytesOf(tensor.type)));
}

} // namespace

Tensor Graph::add(const char *name, std::map<std::string, Tensor> tensors, std::vector<std::string> results) {
  for (const std::string &result : results)
    tensors[result] = std::make_shared<Tensor_attributes>();
  std::erase_if(tensors, [](const auto &tensor) { return tensor.second == nullptr; }); // no bias
  operation_ = std::make_shared<Operation>(Operation{name, std::move(tensors), std::move(results)});
  return operation_->tensors.at(operation_->results[0]);
}

std::array<Tensor, 2> Graph::sdpa(const Tensor &q, const Tensor &k, const Tensor &v, const SDPA_attributes &options) {
  std::vector<std::string> results{"o"};
  if (options.hasStatistics)
    results.emplace_back("stats");
  const Tensor out = add("sdpa", {{"q", q}, {"k", k}, {"v", v}, {"bias", options.bias}}, results);
  operation_->attention = options;
  return {out, options.hasStatistics ? operation_->tensors.at("stats") : nullptr};
}

std::array<Tensor, 3> Graph::sdpa_backward(const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &o,
                                           const Tensor &gradient, const Tensor &stats,
                                           const SDPA_backward_attributes &options) {
  const Tensor dq =
      add("sdpa_backward",
          {{"q", q}, {"k", k}, {"v", v}, {"o", o}, {"do", gradient}, {"stats", stats}, {"bias", options.bias}},
          {"dq", "dk", "dv"});
  operation_->attention = options;
  return {dq, operation_->tensors.at("dk"), operation_->tensors.at("dv")};
}

Tensor Graph::conv_fprop(const Tensor &x, const Tensor &w, const Conv_fprop_attributes &options) {
  const Tensor y = add("conv_fprop", {{"x", x}, {"w", w}}, {"y"});
  operation_->conv = options;
  return y;
}
Tensor Graph::conv_dgrad(const Tensor &dy, const Tensor &w, const Conv_dgrad_attributes &options) {
  const Tensor dx = add("conv_dgrad", {{"y", dy}, {"w", w}}, {"x"});
  operation_->conv = options;
  return dx;
}
Tensor Graph::conv_wgrad(const Tensor &dy, const Tensor &x, const Conv_wgrad_attributes &options) {
  const Tensor dw = add("conv_wgrad", {{"y", dy}, {"x", x}}, {"w"});
  operation_->conv = options;
  return dw;
}

error_t Graph::validate() {
  if (!operation_)
    return {"a graph has no operation"};
  std::set<int64_t> numbers;
  for (const auto &[name, tensor] : operation_->tensors) {
    const bool isResult = std::ranges::count(operation_->results, name) > 0;
    if (std::string why = refuseTensor(name, *tensor, isResult); !why.empty())
      return {why};
    if (!numbers.insert(*tensor->uid).second)
      return {name + " has the number of another tensor"};
  }
  if (intermediate_ == DataType_t::NOT_SET || compute_ != DataType_t::FLOAT)
    return {"an intermediate type that is not set, or another type than float32 to compute in"};
  const std::string why = isAttention(*operation_) ? refuseAttention(*operation_) : refuseConv(*operation_);
  isValid_ = why.empty();
  return {why};
}

error_t Graph::build_operation_graph(cudnnHandle_t handle) {
  if (!isValid_ || handle == nullptr)
    return {"a graph without a handle, or that is not validated"};
  device_ = handle->device;
  return {};
}

error_t Graph::create_execution_plans(const std::vector<HeurMode_t> &modes) {
  const char *has = std::getenv("DS_FAKE_CUDNN");
  if (device_ < 0 || (has != nullptr && std::string_view(has) == "0"))
    return {"the graph is not built, or there is no engine by DS_FAKE_CUDNN=0"};
  const std::vector<Engine> all = operation_->name == "sdpa"            ? attentionEngines(operation_->attention)
                                  : operation_->name == "sdpa_backward" ? std::vector{attentionGradEngine(*operation_)}
                                                                        : convEngines(*operation_);
  for (HeurMode_t mode : modes)
    for (const Engine &engine : all)
      if (engine.mode == mode)
        engines_.push_back(engine);
  return {engines_.empty() ? "no engine of these modes" : ""};
}

Graph &Graph::deselect_numeric_notes(const std::vector<NumericalNote_t> &notes) {
  for (Engine &engine : engines_) // of those that the heuristics have named by now
    for (NumericalNote_t note : notes)
      engine.isBarred |= std::ranges::count(engine.notes, note) > 0;
  return *this;
}

Graph &Graph::deselect_workspace_greater_than(int64_t bytes) {
  mostWorkspace_ = bytes;
  return *this;
}

const Engine *Graph::chosen() const {
  for (const Engine &engine : engines_)
    if (!engine.isBarred && engine.workspaceBytes <= mostWorkspace_)
      return &engine;
  return nullptr;
}

error_t Graph::check_support() { return {chosen() ? "" : "no engine is left"}; }

error_t Graph::build_plans() {
  isBuilt_ = chosen() != nullptr;
  return check_support();
}

error_t Graph::get_workspace_size(int64_t &bytes) const {
  if (!isBuilt_)
    return {"there is no plan"};
  bytes = chosen()->workspaceBytes + frontendWorkspace(*operation_);
  return {};
}

error_t Graph::execute(cudnnHandle_t handle, std::unordered_map<int64_t, void *> &addresses, void *workspace) const {
  int64_t scratch = 0;
  if (error_t error = get_workspace_size(scratch); error.is_bad())
    return error;
  if (handle == nullptr || handle->device != device_)
    return {"a plan of GPU " + std::to_string(device_) + " is run without a handle of that GPU"};
  std::map<std::string, void *> named;
  std::vector<const void *> touched;
  for (const auto &[name, tensor] : operation_->tensors) {
    const auto found = addresses.find(*tensor->uid);
    if (found == addresses.end() || found->second == nullptr)
      return {name + " has no address"};
    if (uintptr_t(found->second) % alignment != 0)
      return {name + " does not lie at a multiple of 16 bytes"};
    if (!isUsable(*tensor, found->second))
      return {name + " lies outside of every operand"};
    named[name] = found->second;
    touched.push_back(found->second);
  }
  if (scratch > 0 && (workspace == nullptr || uintptr_t(workspace) % alignment != 0))
    return {"the plan has no workspace that is aligned"};
  if (chosen()->workspaceBytes > 0 && frontendWorkspace(*operation_) % int64_t(alignment) != 0)
    return {"the engine's workspace, behind the header's own, is not aligned"};
  if (scratch > 0 && !shim::isUsable(workspace, size_t(scratch)))
    return {"the workspace lies outside of every operand"};
  if (scratch > 0)
    touched.push_back(workspace);
  const auto run = [operation = operation_, named, engine = *chosen(), workspace, scratch] {
    if (scratch > 0)
      std::memset(workspace, 0xff, size_t(scratch));
    compute(*operation, named, engine);
    ++runs[operation->name];
  };
  const cudaError_t error =
      shim::submit(handle->stream, {isAttention(*operation_) ? "an attention" : "a convolution", run, touched});
  return {error == cudaSuccess ? "" : cudaGetErrorString(error)};
}

} // namespace cudnn_frontend::graph
