//===- ModelFile.cpp - what an ONNX file says, read a second time ---------===//
#include "compiler/sources/ModelFile.h"

#include "compiler/import/files/Files.h"
#include "compiler/import/files/Metadata.h"
#include "compiler/import/files/WireScan.h"
#include "compiler/import/files/onnx.pb.h"
#include "core/DType.h"
#include "core/Error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace ds::sources {
namespace {

using Json = nlohmann::json;

constexpr uint64_t structureLimit = uint64_t(512) << 20; // bytes of a graph without its weights

/// TensorProto.DataType (onnx.proto).
std::optional<DType> dtypeOf(int onnx) {
  switch (onnx) {
  case 1:
    return DType::F32;
  case 6:
    return DType::I32;
  case 7:
    return DType::I64;
  case 9:
    return DType::Bool;
  case 11:
    return DType::F64;
  default:
    return std::nullopt;
  }
}

template <typename Number, typename Values> std::string bytesOf(const Values &values) {
  std::string bytes;
  for (const auto value : values) {
    const auto number = Number(value);
    bytes.append(reinterpret_cast<const char *>(&number), sizeof number);
  }
  return bytes;
}

std::string literalOf(const onnx::TensorProto &tensor, DType dtype) {
  if (tensor.has_raw_data())
    return tensor.raw_data();
  switch (dtype) {
  case DType::F32:
    return bytesOf<float>(tensor.float_data());
  case DType::F64:
    return bytesOf<double>(tensor.double_data());
  case DType::I64:
    return bytesOf<int64_t>(tensor.int64_data());
  case DType::I32:
    return bytesOf<int32_t>(tensor.int32_data());
  default:
    return bytesOf<uint8_t>(tensor.int32_data());
  }
}

uint64_t decimal(const std::string &text, const std::string &what) {
  size_t used = 0;
  try {
    const uint64_t value = std::stoull(text, &used);
    if (used == text.size())
      return value;
  } catch (const std::exception &) { // said below
  }
  throw Error(what + " is '" + text + "', which is no number of bytes");
}

Tensor tensorOf(const onnx::TensorProto &proto, const std::optional<import::InlineData> &inlined,
                const std::filesystem::path &model) {
  Tensor tensor{.dtype = dtypeOf(proto.data_type()), .shape = {proto.dims().begin(), proto.dims().end()}};
  if (!tensor.dtype)
    return tensor;
  if (proto.data_location() == 1) { // EXTERNAL
    for (const onnx::StringStringEntryProto &entry : proto.external_data()) {
      if (entry.key() == "location")
        tensor.file = (model.parent_path() / entry.value()).string();
      else if (entry.key() == "offset")
        tensor.offset = decimal(entry.value(), "the offset of '" + proto.name() + "'");
    }
  } else if (inlined) {
    tensor.file = model.string();
    tensor.offset = inlined->offset;
  } else {
    tensor.literal = literalOf(proto, *tensor.dtype);
  }
  uint64_t elements = 1;
  for (const int64_t dim : tensor.shape)
    elements *= uint64_t(dim);
  tensor.length = elements * uint64_t(byteSize(*tensor.dtype));
  return tensor;
}

const std::string *entryOf(const google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto> &entries,
                           const std::string &key) {
  for (const onnx::StringStringEntryProto &entry : entries)
    if (entry.key() == key)
      return &entry.value();
  return nullptr;
}

/// What a node gives a name: the floats of a Constant, and by Identity a tensor with another's values.
std::optional<Tensor> namedByNode(const onnx::NodeProto &node, const ModelFile &model) {
  if (node.output_size() != 1)
    return std::nullopt;
  if (node.op_type() == "Identity" && node.input_size() == 1)
    if (const auto twin = model.tensors.find(node.input(0)); twin != model.tensors.end())
      return twin->second;
  const bool isFloats = node.op_type() == "Constant" && node.attribute_size() == 1 && node.attribute(0).has_t() &&
                        (node.attribute(0).t().data_type() == 1 || node.attribute(0).t().data_type() == 11);
  return isFloats ? std::optional(tensorOf(node.attribute(0).t(), std::nullopt, "")) : std::nullopt;
}

/// Tensors of the bodies of control flow, behind those of the graph.
void readBodies(const onnx::GraphProto &graph, ModelFile &model) {
  for (const onnx::NodeProto &node : graph.node())
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      for (const onnx::TensorProto &tensor : attribute.g().initializer())
        model.tensors.try_emplace(tensor.name(), tensorOf(tensor, std::nullopt, ""));
      for (const onnx::NodeProto &inner : attribute.g().node())
        if (const std::optional<Tensor> tensor = namedByNode(inner, model))
          model.tensors.try_emplace(inner.output(0), *tensor);
      readBodies(attribute.g(), model);
    }
}

/// torch.export's InputSpec.
void readTensorNotes(const onnx::GraphProto &graph, ModelFile &model) {
  const std::string prefix = "pkg.torch.export.graph_signature.InputSpec.";
  for (const auto *list : {&graph.value_info(), &graph.input()})
    for (const onnx::ValueInfoProto &value : *list)
      if (const std::string *kind = entryOf(value.metadata_props(), prefix + "kind")) {
        const std::string *persistent = entryOf(value.metadata_props(), prefix + "persistent");
        model.notes[value.name()] = {*kind, persistent != nullptr && *persistent == "True"};
      }
}

GraphInput inputOf(const onnx::ValueInfoProto &proto) {
  GraphInput input{.dtype = dtypeOf(proto.type().tensor_type().elem_type())};
  for (const auto &dim : proto.type().tensor_type().shape().dim()) {
    input.shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    input.names.push_back(dim.dim_param());
  }
  return input;
}

void readInputs(const onnx::GraphProto &graph, ModelFile &model) {
  for (const onnx::ValueInfoProto &proto : graph.input()) {
    if (model.tensors.contains(proto.name()))
      continue;
    const GraphInput input = inputOf(proto);
    const auto note = model.notes.find(proto.name());
    if (note != model.notes.end() && (note->second.kind == "PARAMETER" || note->second.kind == "BUFFER"))
      model.tensors[proto.name()] = {.dtype = input.dtype, .shape = input.shape, .isHere = false};
    else
      model.inputs[proto.name()] = input;
  }
}

/// "BertForMaskedLM" of "['transformers.models.bert.modeling_bert.BertForMaskedLM', ...]", outermost module first.
std::string classOf(const onnx::NodeProto &node) {
  const std::string *hierarchy = entryOf(node.metadata_props(), "pkg.torch.onnx.class_hierarchy");
  constexpr std::string_view start = "['transformers.";
  if (hierarchy == nullptr || !hierarchy->starts_with(start))
    return "";
  const std::string first = hierarchy->substr(2, hierarchy->find('\'', 2) - 2);
  return first.substr(first.rfind('.') + 1);
}

/// Lines "p_x: PARAMETER target='a.b.weight'".
void readSignature(const std::string &text, ModelFile &model) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const size_t mark = line.find(" PARAMETER target='"); mark != std::string::npos)
      if (const size_t begin = line.find('\'', mark) + 1, end = line.find('\'', begin); end != std::string::npos)
        model.parameters.insert(line.substr(begin, end - begin));
}

/// A node as the plan's reference program calls it: behind the modules that it lies in.
std::string titleOf(const onnx::NodeProto &node) {
  const std::string scope = import::scopeOf(node);
  return scope.empty() ? node.name() : scope + "/" + node.name();
}

/// What a value is made of, under nodes that move or convert elements.
std::string originOf(const onnx::GraphProto &graph, std::string value) {
  static const std::set<std::string> views = {"Identity", "Cast",   "CastLike", "Reshape",
                                              "Squeeze",  "Expand", "Flatten",  "Unsqueeze"};
  for (auto node = graph.node().rbegin(); node != graph.node().rend(); ++node) { // nodes are sorted
    if (std::ranges::find(node->output(), value) == node->output().end())
      continue;
    if (!views.contains(node->op_type()) || node->input_size() == 0)
      return titleOf(*node);
    value = node->input(0);
  }
  return value;
}

/// models/export.py's notes. What is of another form was refused when the model was imported.
void readNotes(const onnx::ModelProto &proto, ModelFile &model) {
  const auto note = [&](const char *key) {
    const std::string *text = entryOf(proto.metadata_props(), key);
    return text == nullptr ? Json() : Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  };
  if (const Json names = note("deepstatic.trainable"); names.is_array())
    model.trainable = names.get<std::set<std::string>>();
  for (const Json &group : note("deepstatic.tied"))
    for (const Json &name : group)
      for (const Json &other : group)
        if (name != other)
          model.tied[name.get<std::string>()].insert(other.get<std::string>());
  const Json rules = note("deepstatic.init"), tokens = note("deepstatic.tokens");
  for (const auto &[name, rule] : rules.items())
    model.drawn[name] = {rule.value("rule", ""), rule.value("mean", 0.0), rule.value("std", 0.0)};
  for (const auto &[name, how] : tokens.items())
    if (const auto input = model.inputs.find(name); input != model.inputs.end())
      input->second.tokens = how.get<std::string>();
  const Json state = note("deepstatic.state");
  for (const auto &[buffer, made] : state.items()) {
    const auto value = made.at("value").get<std::string>();
    model.state[buffer] = {value, originOf(proto.graph(), value)};
  }
}

} // namespace

ModelFile readModel(const std::string &path) {
  ModelFile model;
  model.path = import::modelFile(path).string();
  if (model.path.ends_with(".textproto") || model.path.ends_with(".onnxtxt"))
    throw Error(model.path + ": a model in protobuf's text format is not compared; give the .onnx file");
  const std::shared_ptr<import::InputFile> file = import::InputFile::open(model.path);
  const import::ScannedModel scanned = import::scanModel(file->map(), structureLimit, model.path);
  const onnx::GraphProto &graph = scanned.proto.graph();
  for (int i = 0; i < graph.initializer_size(); ++i)
    model.tensors[graph.initializer(i).name()] = tensorOf(graph.initializer(i), scanned.data[size_t(i)], model.path);
  for (const onnx::NodeProto &node : graph.node())
    if (const std::optional<Tensor> tensor = namedByNode(node, model))
      model.tensors.try_emplace(node.output(0), *tensor);
  readBodies(graph, model);
  readTensorNotes(graph, model);
  readInputs(graph, model);
  for (const onnx::ValueInfoProto &output : graph.output())
    model.outputs.insert(output.name());
  for (const onnx::NodeProto &node : graph.node()) {
    model.read.insert(node.input().begin(), node.input().end());
    if (model.className.empty())
      model.className = classOf(node);
  }
  if (const std::string *text = entryOf(graph.metadata_props(), "pkg.torch.export.ExportedProgram.graph_signature"))
    readSignature(*text, model);
  model.bringsAlgorithm = scanned.proto.training_info_size() > 0;
  try {
    readNotes(scanned.proto, model);
  } catch (const Json::exception &) {
    throw Error(model.path + ": its deepstatic.* metadata is not as models/export.py writes it");
  }
  return model;
}

} // namespace ds::sources
