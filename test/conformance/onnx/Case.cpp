//===- Case.cpp - the cases of ONNX's conformance suite ----------------------===//
#include "test/conformance/onnx/Case.h"

#include "compiler/import/NarrowFloat.h"
#include "compiler/import/Types.h"
#include "compiler/import/Weights.h"
#include "core/Error.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <bit>
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
      {"If", {0}},
      {"Loop", {0, 1}},
      {"Compress", {1}},
      {"NonZero", {0}},
      {"Unique", {0}},
      {"MaxUnpool", {2}},
      {"SequenceInsert", {2}},
      {"SequenceErase", {1}},
      {"AffineGrid", {1}},
      {"HannWindow", {0}},
      {"HammingWindow", {0}},
      {"BlackmanWindow", {0}},
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
  const std::optional<DType> dtype = import::valueTypeFromOnnx(proto.data_type());
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

/// The elements of a SequenceProto, of which the importer's schema knows nothing: its field 3.
std::vector<onnx::TensorProto> readSequence(const fs::path &path) {
  const std::string content = contentOf(path);
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(content.data()), int(content.size()));
  std::vector<onnx::TensorProto> elements;
  while (const uint32_t tag = stream.ReadTag()) {
    uint32_t bytes = 0;
    std::string element;
    if (tag == (3 << 3 | 2) && stream.ReadVarint32(&bytes) && stream.ReadString(&element, int(bytes))) {
      if (!elements.emplace_back().ParseFromString(element))
        throw Error(path.string() + " is no sequence of tensors");
    } else if (tag != (3 << 3 | 2)) {
      google::protobuf::internal::WireFormatLite::SkipField(&stream, tag);
    }
  }
  return elements;
}

onnx::NodeProto nodeOf(const char *op, const std::vector<std::string> &inputs, const std::string &output) {
  onnx::NodeProto node;
  node.set_op_type(op);
  for (const std::string &input : inputs)
    node.add_input(input);
  node.add_output(output);
  return node;
}

onnx::ValueInfoProto tensorInfo(const std::string &name, int type, const Shape &shape) {
  onnx::ValueInfoProto info;
  info.set_name(name);
  info.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  auto *dims = info.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int64_t dim : shape)
    dims->add_dim()->set_dim_value(dim);
  return info;
}

/// A sequence that is fed becomes an input for each element and a node that joins them.
void addSequenceInput(Case &test, const onnx::ValueInfoProto &input, const fs::path &path) {
  onnx::GraphProto &graph = *test.model.mutable_graph();
  std::vector<std::string> names;
  for (onnx::TensorProto &element : readSequence(path)) {
    names.push_back(input.name() + "[" + std::to_string(names.size()) + "]");
    element.set_name(names.back());
    test.inputs.push_back(tensorOf(element, "input '" + names.back() + "'"));
    *graph.add_input() = tensorInfo(names.back(), element.data_type(), test.inputs.back().shape);
  }
  *graph.add_node() = nodeOf(names.empty() ? "SequenceEmpty" : "SequenceConstruct", names, input.name());
  for (int i = graph.node_size() - 1; i > 0; --i)
    graph.mutable_node()->SwapElements(i, i - 1);
}

/// A sequence that results becomes its length and an output for each element that is expected.
void addSequenceOutput(Case &test, const onnx::ValueInfoProto &output, const fs::path &path) {
  onnx::GraphProto &graph = *test.model.mutable_graph();
  std::vector<onnx::TensorProto> elements = readSequence(path);
  const auto count = int64_t(elements.size());
  const std::string length = output.name() + "#";
  *graph.add_node() = nodeOf("SequenceLength", {output.name()}, length);
  *graph.add_output() = tensorInfo(length, 7, {});
  test.outputs.push_back({length, DType::I64, {}, std::vector<char>(sizeof count)});
  std::memcpy(test.outputs.back().bytes.data(), &count, sizeof count);
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = output.name() + "[" + std::to_string(i) + "]", index = name + " index";
    onnx::TensorProto &place = *graph.add_initializer();
    place.set_name(index);
    place.set_data_type(7);
    place.add_int64_data(i);
    *graph.add_node() = nodeOf("SequenceAt", {output.name(), index}, name);
    onnx::TensorProto &element = elements[size_t(i)];
    element.set_name(name);
    test.outputs.push_back(tensorOf(element, "output '" + name + "'"));
    *graph.add_output() = tensorInfo(name, element.data_type(), test.outputs.back().shape);
  }
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

/// Of 16 bits, also two units in the last place are near: what judges rounds after each step of an operator.
std::string difference16(const HostTensor &actual, const HostTensor &expected) {
  const int precision = expected.dtype == DType::F16 ? 11 : 8; // bits
  auto number = [](const HostTensor &tensor, size_t i) {
    uint16_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + 2 * i, 2);
    return std::bit_cast<double>(import::convertBits(bits, tensor.dtype, DType::F64));
  };
  for (size_t i = 0; i < actual.bytes.size() / 2; ++i) {
    const double a = number(actual, i), e = number(expected, i);
    const double unit = e == 0 || !std::isfinite(e) ? 0 : std::ldexp(1.0, std::ilogb(e) + 1 - precision);
    if (a != e && !(std::isnan(a) && std::isnan(e)) &&
        !(std::fabs(a - e) <= 1e-7 + std::max(1e-3 * std::fabs(e), 2 * unit)))
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
    if (input.type().has_sequence_type()) {
      addSequenceInput(result, input, file);
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
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> outputs;
  outputs.Swap(graph.mutable_output());
  for (int i = 0; i < outputs.size(); ++i) {
    const fs::path file = data / ("output_" + std::to_string(i) + ".pb");
    const std::string what = "output '" + outputs[i].name() + "'";
    if (outputs[i].type().has_sequence_type()) {
      addSequenceOutput(result, outputs[i], file);
      continue;
    }
    result.outputs.push_back(tensorOf(readTensor(file, outputs[i], what), what));
    *graph.add_output() = outputs[i];
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
  case DType::F16:
  case DType::BF16:
    return difference16(actual, expected);
  case DType::I64:
    return elementDifference<int64_t>(actual, expected);
  case DType::I32:
    return elementDifference<int32_t>(actual, expected);
  default:
    return elementDifference<uint8_t>(actual, expected);
  }
}

} // namespace ds::test
