//===- LossFile.cpp - a loss that is a graph of its own -------------------------===//
#include "compiler/import/LossFile.h"

#include "compiler/import/Types.h"
#include "compiler/import/Weights.h"
#include "compiler/import/files/Failure.h"

#include <filesystem>
#include <map>
#include <set>

namespace ds::import {
namespace {

constexpr const char *domain = "deepstatic.loss";

using Values = google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>;
using Names = std::set<std::string>;

const onnx::ValueInfoProto *find(const Values &values, const std::string &name) {
  for (const onnx::ValueInfoProto &value : values)
    if (value.name() == name)
      return &value;
  return nullptr;
}

/// Of everything that has a name in the graph.
Names namesIn(const onnx::GraphProto &graph) {
  Names names;
  for (const onnx::ValueInfoProto &input : graph.input())
    names.insert(input.name());
  for (const onnx::TensorProto &tensor : graph.initializer())
    names.insert(tensor.name());
  for (const onnx::NodeProto &node : graph.node())
    names.insert(node.output().begin(), node.output().end());
  return names;
}

using Domains = std::map<std::pair<std::string, std::string>, std::string>; // of a function: its new domain

/// Calls functions by their new domains, in the bodies of nodes, too.
template <typename Nodes> void renameCalls(Nodes &nodes, const Domains &domains) {
  for (onnx::NodeProto &node : nodes) {
    if (const auto found = domains.find({node.domain(), node.op_type()}); found != domains.end())
      node.set_domain(found->second);
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        renameCalls(*attribute.mutable_g()->mutable_node(), domains);
  }
}

/// Gives the loss's functions to the model, which may have others of the same names.
void moveFunctions(onnx::ModelProto &loss, onnx::ModelProto &model) {
  Domains domains;
  for (const onnx::FunctionProto &function : loss.functions())
    domains[{function.domain(), function.name()}] = std::string(domain) + "/" + function.domain();
  renameCalls(*loss.mutable_graph()->mutable_node(), domains);
  for (onnx::FunctionProto &function : *loss.mutable_functions()) {
    renameCalls(*function.mutable_node(), domains);
    function.set_domain(domains.at({function.domain(), function.name()}));
    *model.add_functions() = std::move(function);
  }
}

/// A Constant node of an initializer, whose elements may lie beside the file.
void addConstant(onnx::FunctionProto &body, onnx::TensorProto &tensor, WeightFiles &files) {
  onnx::NodeProto &node = *body.add_node();
  node.set_op_type("Constant");
  node.set_name(tensor.name());
  node.add_output(tensor.name());
  if (tensor.external_data_size() > 0) {
    const std::string what = "initializer '" + tensor.name() + "'";
    const std::optional<DType> dtype = dtypeFromOnnx(tensor.data_type());
    if (!dtype)
      throw Failure(what + " is " + onnxTypeName(tensor.data_type()) + " in a file of its own; store it in the loss");
    const std::vector<char> elements = files.read(files.locate(tensor, std::nullopt, *dtype, what), *dtype);
    tensor.clear_external_data();
    tensor.clear_data_location();
    tensor.set_raw_data(elements.data(), elements.size());
  }
  onnx::AttributeProto &value = *node.add_attribute();
  value.set_name("value");
  value.set_type(4); // TENSOR
  *value.mutable_t() = std::move(tensor);
}

class Joiner {
public:
  Joiner(onnx::ModelProto &model, onnx::ModelProto &loss, const std::string &path)
      : model_(model), graph_(*model.mutable_graph()), loss_(loss), inner_(*loss.mutable_graph()),
        start_("the loss " + path + " "), path_(path) {}

  JoinedLoss join(std::span<const char> bytes) {
    checkOutput();
    JoinedLoss joined{.file = path_, .prefix = {}, .value = freeName(inner_.output(0).name()), .reads = {}};
    onnx::NodeProto call;
    call.set_op_type("Loss");
    call.set_domain(domain);
    call.set_name(std::filesystem::path(path_).stem().string());
    joined.prefix = call.name() + "#"; // what inlining begins the names of its nodes with
    for (const onnx::ValueInfoProto &input : inputsOf(inner_))
      connect(input, call, joined);
    if (joined.reads.empty())
      refuseStrangers();
    call.add_output(joined.value);
    addFunction(bytes);
    *graph_.add_node() = std::move(call);
    onnx::ValueInfoProto &output = *graph_.add_output();
    output = inner_.output(0);
    output.set_name(joined.value);
    return joined;
  }

private:
  void checkOutput() const {
    if (inner_.output_size() != 1)
      throw Failure(start_ + "has " + std::to_string(inner_.output_size()) + " outputs (" +
                    describeValues(inner_.output()) +
                    "), and one must be the scalar to train on; return it alone and export again");
    const auto &type = inner_.output(0).type().tensor_type();
    if (type.has_shape() && type.shape().dim_size() != 0)
      throw Failure(start_ + "ends in " + describeValue(inner_.output(0)) +
                    ", and a loss is one number; return loss.mean() and export again");
    if (inner_.sparse_initializer_size() > 0)
      throw Failure(start_ + "has sparse initializers, which are not supported; store them dense");
    if (loss_.training_info_size() > 0 || model_.training_info_size() > 0)
      throw Failure(start_ + "cannot be joined with a training algorithm (training_info); leave one of them out");
  }

  /// Initializers may be listed among the inputs.
  static std::vector<onnx::ValueInfoProto> inputsOf(const onnx::GraphProto &graph) {
    Names initializers;
    for (const onnx::TensorProto &tensor : graph.initializer())
      initializers.insert(tensor.name());
    std::vector<onnx::ValueInfoProto> list;
    for (const onnx::ValueInfoProto &input : graph.input())
      if (!initializers.count(input.name()))
        list.push_back(input);
    return list;
  }

  void connect(const onnx::ValueInfoProto &input, onnx::NodeProto &call, JoinedLoss &joined) {
    call.add_input(input.name());
    const onnx::ValueInfoProto *output = find(graph_.output(), input.name());
    const onnx::ValueInfoProto *data = find(graph_.input(), input.name());
    if (output) {
      joined.reads.push_back(input);
    } else if (data) {
      if (data->type().tensor_type().elem_type() != input.type().tensor_type().elem_type())
        throw Failure(start_ + "reads " + describeValue(input) + " as " +
                      onnxTypeName(input.type().tensor_type().elem_type()) + ", which the model reads as " +
                      onnxTypeName(data->type().tensor_type().elem_type()) + "; give them one type, or two names");
    } else if (taken_.count(input.name())) {
      throw Failure(start_ + "reads data '" + input.name() +
                    "', which is the name of a value inside of the model; call the input otherwise (input_names)");
    } else {
      onnx::ValueInfoProto &added = *graph_.add_input();
      added = input;
      nameBatch(added);
    }
  }

  /// Dimension 0 of the data counts samples: it is that of the model's, whatever the file calls it.
  void nameBatch(onnx::ValueInfoProto &added) const {
    auto &shape = *added.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (const onnx::ValueInfoProto &input : inputsOf(graph_))
      if (const auto &own = input.type().tensor_type().shape(); own.dim_size() > 0 && shape.dim_size() > 0) {
        if (!shape.dim(0).has_dim_value())
          *shape.mutable_dim(0) = own.dim(0);
        return;
      }
  }

  [[noreturn]] void refuseStrangers() const {
    std::string names;
    for (const onnx::ValueInfoProto &input : inner_.input())
      names += (names.empty() ? "'" : ", '") + input.name() + "'";
    throw Failure(start_ + "reads " + (names.empty() ? "nothing" : names) + ", and no output of the model, which are " +
                  describeValues(graph_.output()) +
                  R"(; name an input of the loss like one: torch.onnx.export(loss, example, FILE, input_names=[")" +
                  graph_.output(0).name() + R"(", "labels"]))");
  }

  void addFunction(std::span<const char> bytes) {
    moveFunctions(loss_, model_);
    onnx::FunctionProto &body = *model_.add_functions();
    body.set_name("Loss");
    body.set_domain(domain);
    *body.mutable_opset_import() = loss_.opset_import();
    for (const onnx::ValueInfoProto &input : inputsOf(inner_))
      body.add_input(input.name());
    body.add_output(inner_.output(0).name());
    WeightFiles files(path_, bytes);
    for (onnx::TensorProto &tensor : *inner_.mutable_initializer())
      addConstant(body, tensor, files);
    for (onnx::NodeProto &node : *inner_.mutable_node())
      *body.add_node() = std::move(node);
  }

  std::string freeName(const std::string &wanted) const {
    std::string name = wanted;
    while (taken_.count(name))
      name = "loss/" + name;
    return name;
  }

  onnx::ModelProto &model_;
  onnx::GraphProto &graph_;
  onnx::ModelProto &loss_;
  onnx::GraphProto &inner_;
  const std::string start_, path_;
  const Names taken_ = namesIn(graph_);
};

} // namespace

std::string describeValue(const onnx::ValueInfoProto &value) {
  const auto &type = value.type().tensor_type();
  if (!type.has_shape())
    return "'" + value.name() + "'";
  std::string dims;
  for (const auto &dim : type.shape().dim())
    dims += (dims.empty() ? "" : ", ") + (dim.has_dim_value()       ? std::to_string(dim.dim_value())
                                          : dim.dim_param().empty() ? "?"
                                                                    : dim.dim_param());
  return "'" + value.name() + "' [" + dims + "]";
}

std::string describeValues(const Values &values) {
  std::string list;
  for (const onnx::ValueInfoProto &value : values)
    list += (list.empty() ? "" : ", ") + describeValue(value);
  return list;
}

JoinedLoss joinLossFile(onnx::ModelProto &model, onnx::ModelProto loss, const std::string &path,
                        std::span<const char> bytes) {
  return Joiner(model, loss, path).join(bytes);
}

} // namespace ds::import
