//===- Flatten.cpp - one list of nodes, functions inlined ----------------------===//
#include "compiler/import/Flatten.h"

#include "compiler/import/files/Failure.h"

#include <map>
#include <tuple>

namespace ds::import {

static std::string domainOf(const std::string &domain) { return domain == "ai.onnx" ? "" : domain; }

std::string describe(const FlatNode &node) {
  const onnx::NodeProto &proto = *node.proto;
  const std::string name = !proto.name().empty()      ? proto.name()
                           : proto.output_size() == 0 ? std::string()
                                                      : proto.output(0);
  return "node '" + name + "' (" + proto.op_type() + ", opset " + std::to_string(node.opset) + ")";
}

bool isTrainingDomain(const std::string &domain) {
  return domain == "ai.onnx.preview.training" || domain == "ai.onnx.preview";
}

bool isGradient(const onnx::NodeProto &node) { return node.op_type() == "Gradient" && isTrainingDomain(node.domain()); }

namespace {

/// The version of the default domain, 0 where none is imported: a model may use other operators only.
template <typename List> int64_t defaultOpset(const List &imports) {
  int64_t version = 0;
  for (const onnx::OperatorSetIdProto &each : imports)
    if (domainOf(each.domain()).empty())
      version = std::max(version, each.version());
  return version;
}

class Inliner {
public:
  explicit Inliner(const onnx::ModelProto &model) {
    for (const onnx::FunctionProto &function : model.functions())
      functions_[{domainOf(function.domain()), function.name(), function.overload()}] = &function;
    const int64_t opset = defaultOpset(model.opset_import());
    for (const onnx::NodeProto &node : model.graph().node())
      add({&node, opset});
  }

  FlatGraph take() { return std::move(graph_); }

private:
  using Key = std::tuple<std::string, std::string, std::string>;

  void add(FlatNode node) {
    auto function = functions_.find({domainOf(node.proto->domain()), node.proto->op_type(), node.proto->overload()});
    if (function != functions_.end())
      return inlineCall(node, *function->second);
    if (isTrainingDomain(node.proto->domain()))
      node.opset = 1;
    else if (node.opset == 0)
      throw Failure(describe(node) + ": the model imports no opset of the default domain");
    if (isGradient(*node.proto))
      node.proto = &withTarget(node);
    if (graph_.nodes.size() >= maxNodes)
      throw Failure("the model has more than " + std::to_string(maxNodes) + " nodes once its functions are inlined");
    graph_.nodes.push_back(node);
  }

  /// A copy of a Gradient node whose y is its last input, so that y counts as read.
  const onnx::NodeProto &withTarget(const FlatNode &node) {
    if (depth_ > 0)
      throw Failure(describe(node) + ": a Gradient inside a function is not supported");
    onnx::NodeProto &copy = graph_.inlined.emplace_back(*node.proto);
    for (const onnx::AttributeProto &attribute : copy.attribute()) {
      if (attribute.name() == "xs" || attribute.name() == "zs")
        graph_.differentiated.insert(attribute.strings().begin(), attribute.strings().end());
      if (attribute.name() == "y") {
        graph_.gradientTargets.insert(attribute.s());
        copy.add_input(attribute.s());
      }
    }
    return copy;
  }

  void inlineCall(const FlatNode &call, const onnx::FunctionProto &function) {
    if (depth_ == maxDepth)
      throw Failure(describe(call) + ": functions call each other more than " + std::to_string(maxDepth) +
                    " deep, or without end");
    ++depth_;
    const int64_t opset = defaultOpset(function.opset_import());
    const std::string prefix = call.proto->name() + "#" + std::to_string(instances_++) + "/";
    std::map<std::string, std::string> names; // in the function -> in the graph
    if (call.proto->input_size() > function.input_size() || call.proto->output_size() > function.output_size())
      throw Failure(describe(call) + ": the function takes " + std::to_string(function.input_size()) +
                    " inputs and has " + std::to_string(function.output_size()) + " outputs, fewer than the call");
    for (int i = 0; i < function.input_size(); ++i)
      names[function.input(i)] = i < call.proto->input_size() ? call.proto->input(i) : "";
    for (int i = 0; i < call.proto->output_size(); ++i)
      if (!call.proto->output(i).empty())
        names[function.output(i)] = call.proto->output(i);
    for (const onnx::NodeProto &node : function.node())
      add({&instantiate(node, function, *call.proto, prefix, names), opset});
    --depth_;
  }

  const onnx::NodeProto &instantiate(const onnx::NodeProto &node, const onnx::FunctionProto &function,
                                     const onnx::NodeProto &call, const std::string &prefix,
                                     std::map<std::string, std::string> &names) {
    if (graph_.inlined.size() >= maxNodes)
      throw Failure("the model has more than " + std::to_string(maxNodes) + " nodes once its functions are inlined");
    onnx::NodeProto &copy = graph_.inlined.emplace_back(node);
    copy.set_name(prefix + node.name());
    auto rename = [&](std::string &name) {
      if (!name.empty())
        name = names.try_emplace(name, prefix + name).first->second;
    };
    for (std::string &input : *copy.mutable_input())
      rename(input);
    for (std::string &output : *copy.mutable_output())
      rename(output);
    bindAttributes(copy, function, call);
    return copy;
  }

  /// Replaces references to the function's attributes by the call's values, else by their defaults, else by nothing.
  static void bindAttributes(onnx::NodeProto &node, const onnx::FunctionProto &function, const onnx::NodeProto &call) {
    auto find = [](const auto &list, const std::string &name) -> const onnx::AttributeProto * {
      for (const onnx::AttributeProto &attribute : list)
        if (attribute.name() == name)
          return &attribute;
      return nullptr;
    };
    for (int i = node.attribute_size(); i-- > 0;) {
      const std::string reference = node.attribute(i).ref_attr_name();
      if (reference.empty())
        continue;
      const onnx::AttributeProto *value = find(call.attribute(), reference);
      if (!value)
        value = find(function.attribute_proto(), reference);
      if (!value) {
        node.mutable_attribute()->DeleteSubrange(i, 1);
        continue;
      }
      const std::string name = node.attribute(i).name();
      *node.mutable_attribute(i) = *value;
      node.mutable_attribute(i)->set_name(name);
    }
  }

  static constexpr size_t maxNodes = 1'000'000;
  static constexpr int maxDepth = 32;
  std::map<Key, const onnx::FunctionProto *> functions_;
  FlatGraph graph_;
  int depth_ = 0;
  int64_t instances_ = 0;
};

} // namespace

FlatGraph flatten(const onnx::ModelProto &model) { return Inliner(model).take(); }

} // namespace ds::import
