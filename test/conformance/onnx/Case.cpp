//===- Case.cpp - the cases of ONNX's conformance suite ----------------------===//
#include "test/conformance/onnx/Case.h"

#include "compiler/import/Types.h"
#include "compiler/import/Weights.h"
#include "core/Error.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace ds::test {
namespace fs = std::filesystem;
namespace {

std::string contentOf(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file)
    throw Error(path.string() + " cannot be read");
  return content.str();
}

/// Inputs of operators whose values a static plan is made from. Others stay run-time inputs.
const std::map<std::string, std::set<int>> &staticInputs() {
  static const std::map<std::string, std::set<int>> inputs = {
      {"Resize", {1, 2, 3}},
      {"Upsample", {1}},
      {"Reshape", {1}},
      {"Expand", {1}},
      {"Tile", {1}},
      {"Pad", {1, 2, 3}},
      {"Slice", {1, 2, 3, 4}},
      {"Squeeze", {1}},
      {"Unsqueeze", {1}},
      {"Split", {1}},
      {"SplitToSequence", {1}},
      {"SequenceAt", {1}},
      {"ConstantOfShape", {0}},
      {"Range", {0, 1, 2}},
      {"CumSum", {1}},
      {"TopK", {1}},
      {"OneHot", {1}},
      {"Trilu", {1}},
      {"Dropout", {1, 2}},
      {"CenterCropPad", {1}},
      {"ReduceSum", {1}},
      {"ReduceMean", {1}},
      {"ReduceMax", {1}},
      {"ReduceMin", {1}},
      {"ReduceProd", {1}},
      {"ReduceL1", {1}},
      {"ReduceL2", {1}},
      {"ReduceSumSquare", {1}},
      {"ReduceLogSum", {1}},
      {"ReduceLogSumExp", {1}},
  };
  return inputs;
}

/// Inputs that are read at those places, or that such a value is computed from.
std::set<std::string> inputsToBind(const onnx::GraphProto &graph) {
  std::set<std::string> names;
  for (auto node = graph.node().rbegin(); node != graph.node().rend(); ++node) {
    const bool needsTypesOnly = node->op_type() == "Shape" || node->op_type() == "Size";
    for (const std::string &output : node->output())
      if (names.count(output) && !needsTypesOnly)
        names.insert(node->input().begin(), node->input().end());
    if (auto found = staticInputs().find(node->op_type()); found != staticInputs().end())
      for (int index : found->second)
        if (index < node->input_size())
          names.insert(node->input(index));
  }
  return names;
}

HostTensor tensorOf(const onnx::TensorProto &proto, const std::string &what) {
  const std::optional<DType> dtype = import::dtypeFromOnnx(proto.data_type());
  if (!dtype)
    throw Error(what + " is " + import::onnxTypeName(proto.data_type()));
  const Shape shape(proto.dims().begin(), proto.dims().end());
  return {proto.name(), *dtype, shape, import::literalElements(proto, *dtype, what)};
}

onnx::TensorProto readTensor(const fs::path &path, const onnx::ValueInfoProto &value, const std::string &what) {
  if (!value.type().has_tensor_type())
    throw Error(what + " is no tensor");
  onnx::TensorProto proto;
  if (!proto.ParseFromString(contentOf(path)))
    throw Error(path.string() + " is no tensor");
  proto.set_name(value.name());
  return proto;
}

template <typename T> std::string elementDifference(const HostTensor &actual, const HostTensor &expected) {
  for (size_t i = 0; i < actual.bytes.size() / sizeof(T); ++i) {
    T a, e;
    std::memcpy(&a, actual.bytes.data() + i * sizeof(T), sizeof(T));
    std::memcpy(&e, expected.bytes.data() + i * sizeof(T), sizeof(T));
    bool equal = a == e;
    if constexpr (std::is_floating_point_v<T>)
      equal = equal || (std::isnan(a) && std::isnan(e)) || std::fabs(a - e) <= T(1e-7) + T(1e-3) * std::fabs(e);
    if (!equal)
      return "element " + std::to_string(i) + " is " + std::to_string(a) + ", not " + std::to_string(e);
  }
  return {};
}

} // namespace

Case loadCase(const fs::path &folder) {
  Case result;
  if (!result.model.ParseFromString(contentOf(folder / "model.onnx")))
    throw Error("model.onnx cannot be parsed");
  onnx::GraphProto &graph = *result.model.mutable_graph();
  const std::set<std::string> bound = inputsToBind(graph);
  std::set<std::string> initializers;
  for (const onnx::TensorProto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;
  inputs.Swap(graph.mutable_input());
  const fs::path data = folder / "test_data_set_0";
  int number = 0;
  for (onnx::ValueInfoProto &input : inputs) {
    const fs::path file = data / ("input_" + std::to_string(number++) + ".pb");
    if (initializers.count(input.name()) && !fs::exists(file)) {
      graph.add_input()->Swap(&input);
      continue;
    }
    const std::string what = "input '" + input.name() + "'";
    onnx::TensorProto tensor = readTensor(file, input, what);
    if (bound.count(input.name())) {
      graph.add_initializer()->Swap(&tensor);
      continue;
    }
    result.inputs.push_back(tensorOf(tensor, what));
    auto *shape = input.mutable_type()->mutable_tensor_type()->mutable_shape();
    shape->Clear();
    for (int64_t dim : result.inputs.back().shape)
      shape->add_dim()->set_dim_value(dim);
    graph.add_input()->Swap(&input);
  }
  for (int i = 0; i < graph.output_size(); ++i) {
    const std::string what = "output '" + graph.output(i).name() + "'";
    result.outputs.push_back(
        tensorOf(readTensor(data / ("output_" + std::to_string(i) + ".pb"), graph.output(i), what), what));
  }
  return result;
}

std::vector<std::string> caseNames(const fs::path &kind) {
  std::vector<std::string> names;
  for (const fs::directory_entry &entry : fs::directory_iterator(kind))
    if (fs::exists(entry.path() / "model.onnx"))
      names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string difference(const HostTensor &actual, const HostTensor &expected) {
  if (actual.dtype != expected.dtype || actual.shape != expected.shape)
    return "it is " + std::string(name(actual.dtype)) + " " + toString(actual.shape) + ", not " +
           std::string(name(expected.dtype)) + " " + toString(expected.shape);
  switch (actual.dtype) {
  case DType::F32:
    return elementDifference<float>(actual, expected);
  case DType::F64:
    return elementDifference<double>(actual, expected);
  case DType::I64:
    return elementDifference<int64_t>(actual, expected);
  case DType::I32:
    return elementDifference<int32_t>(actual, expected);
  default:
    return elementDifference<uint8_t>(actual, expected);
  }
}

} // namespace ds::test
