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

using Renames = std::map<std::string, std::string>; // inside -> outside

/// Calls f with each graph among a node's attributes: the bodies of If, Loop and Scan.
template <typename NodeRef, typename F> void forEachBody(NodeRef &node, F f) {
  for (int i = 0; i < node.attribute_size(); ++i)
    if (node.attribute(i).has_g())
      f(i);
}

/// What a graph names itself; everything else that it reads lies around it.
std::set<std::string> definedIn(const onnx::GraphProto &graph) {
  std::set<std::string> names;
  for (const onnx::ValueInfoProto &input : graph.input())
    names.insert(input.name());
  for (const onnx::TensorProto &tensor : graph.initializer())
    names.insert(tensor.name());
  for (const onnx::NodeProto &node : graph.node())
    names.insert(node.output().begin(), node.output().end());
  return names;
}

/// Adds what `graph` and the bodies in it read from around it to `names`.
void collectCaptured(const onnx::GraphProto &graph, std::set<std::string> &names) {
  std::set<std::string> read;
  for (const onnx::NodeProto &node : graph.node()) {
    read.insert(node.input().begin(), node.input().end());
    forEachBody(node, [&](int i) { collectCaptured(node.attribute(i).g(), read); });
  }
  for (const onnx::ValueInfoProto &output : graph.output())
    read.insert(output.name());
  const std::set<std::string> defined = definedIn(graph);
  for (const std::string &name : read)
    if (!name.empty() && !defined.count(name))
      names.insert(name);
}

/// Renames what a body reads from around it.
void renameCaptured(onnx::GraphProto &graph, Renames names) {
  for (const std::string &name : definedIn(graph))
    names.erase(name);
  auto rename = [&](std::string &name) {
    if (auto found = names.find(name); found != names.end())
      name = found->second;
  };
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    for (std::string &input : *node.mutable_input())
      rename(input);
    forEachBody(node, [&](int i) { renameCaptured(*node.mutable_attribute(i)->mutable_g(), names); });
  }
  for (onnx::ValueInfoProto &output : *graph.mutable_output())
    rename(*output.mutable_name());
}

class Inliner {
public:
  explicit Inliner(const onnx::ModelProto &model) {
    for (const onnx::FunctionProto &function : model.functions())
      functions_[{domainOf(function.domain()), function.name(), function.overload()}] = &function;
  }

  FlatGraph graphOf(const onnx::ModelProto &model) {
    const int64_t opset = defaultOpset(model.opset_import());
    for (const onnx::NodeProto &node : model.graph().node())
      add({&node, opset});
    return std::move(graph_);
  }

  FlatGraph bodyOf(const onnx::GraphProto &body, int64_t opset, const std::string &prefix) {
    depth_ = 1; // no Gradient here, either
    Renames names;
    for (const std::string &name : definedIn(body))
      if (!name.empty())
        names[name] = prefix + name;
    for (const onnx::NodeProto &node : body.node())
      add({&copyRenamed(node, prefix, [&](std::string &name) { renameKnown(names, name); }, names), opset});
    return std::move(graph_);
  }

private:
  using Key = std::tuple<std::string, std::string, std::string>;

  static void renameKnown(const Renames &names, std::string &name) {
    if (auto found = names.find(name); found != names.end())
      name = found->second;
  }

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
    else
      addCaptured(node);
    if (graph_.nodes.size() >= maxNodes)
      throw Failure("the model has more than " + std::to_string(maxNodes) + " nodes once its functions are inlined");
    graph_.nodes.push_back(node);
  }

  /// A copy of a Gradient node whose y is its last input, so that y counts as read.
  const onnx::NodeProto &withTarget(const FlatNode &node) {
    if (depth_ > 0)
      throw Failure(describe(node) + ": a Gradient inside a function or a body is not supported");
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

  /// What the bodies of a node read from around it become inputs after its own, so that it counts as read.
  void addCaptured(FlatNode &node) {
    std::set<std::string> names;
    forEachBody(*node.proto, [&](int i) { collectCaptured(node.proto->attribute(i).g(), names); });
    if (names.empty())
      return;
    onnx::NodeProto &copy = graph_.inlined.emplace_back(*node.proto);
    for (const std::string &name : names)
      copy.add_input(name);
    node.captured = int(names.size());
    node.proto = &copy;
  }

  void inlineCall(const FlatNode &call, const onnx::FunctionProto &function) {
    if (depth_ == maxDepth)
      throw Failure(describe(call) + ": functions call each other more than " + std::to_string(maxDepth) +
                    " deep, or without end");
    ++depth_;
    const int64_t opset = defaultOpset(function.opset_import());
    const std::string prefix = call.proto->name() + "#" + std::to_string(instances_++) + "/";
    Renames names; // in the function -> in the graph
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
                                     const onnx::NodeProto &call, const std::string &prefix, Renames &names) {
    auto rename = [&](std::string &name) {
      if (!name.empty())
        name = names.try_emplace(name, prefix + name).first->second;
    };
    onnx::NodeProto &copy = copyRenamed(node, prefix, rename, names);
    bindAttributes(copy, function, call);
    return copy;
  }

  /// A copy whose inputs, outputs and bodies have other names.
  template <typename Rename>
  onnx::NodeProto &copyRenamed(const onnx::NodeProto &node, const std::string &prefix, Rename rename,
                               const Renames &names) {
    if (graph_.inlined.size() >= maxNodes)
      throw Failure("the model has more than " + std::to_string(maxNodes) + " nodes once its functions are inlined");
    onnx::NodeProto &copy = graph_.inlined.emplace_back(node);
    copy.set_name(prefix + node.name());
    for (std::string &input : *copy.mutable_input())
      rename(input);
    for (std::string &output : *copy.mutable_output())
      rename(output);
    forEachBody(copy, [&](int i) { renameCaptured(*copy.mutable_attribute(i)->mutable_g(), names); });
    return copy;
  }

  /// Replaces references to the function's attributes by the call's values, else by their defaults, else by nothing.
  static void bindAttributes(onnx::NodeProto &node, const onnx::FunctionProto &function, const onnx::NodeProto &call) {
    forEachBody(node, [&](int i) {
      for (onnx::NodeProto &inside : *node.mutable_attribute(i)->mutable_g()->mutable_node())
        bindAttributes(inside, function, call);
    });
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

FlatGraph flatten(const onnx::ModelProto &model) { return Inliner(model).graphOf(model); }

FlatGraph flattenBody(const onnx::ModelProto &model, const onnx::GraphProto &body, int64_t opset,
                      const std::string &prefix) {
  return Inliner(model).bodyOf(body, opset, prefix);
}

} // namespace ds::import
