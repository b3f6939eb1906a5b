//===- Hazards.cpp - what an exporter lost without a word -----------------------===//
#include "compiler/import/Hazards.h"

#include "compiler/import/files/Failure.h"

#include <charconv>
#include <cstdlib>
#include <map>
#include <regex>

namespace ds::import {

std::string saysMore(const std::string &id) { return "; ds-opt explain " + id + " says more"; }

bool isOptimized(const onnx::ModelProto &model, const FlatGraph &graph) {
  for (const FlatNode &node : graph.nodes)
    if (findEntry(node.proto->metadata_props(), "pkg.onnxscript.rewriter.rule_name"))
      return true;
  for (const onnx::ValueInfoProto &value : model.graph().value_info())
    if (findEntry(value.metadata_props(), "pkg.onnxscript.optimizer.folded_from"))
      return true;
  return false;
}

void checkParametersIntact(const onnx::ModelProto &model, const FlatGraph &graph, const Metadata &metadata,
                           const std::set<std::string> &known) {
  if (!isOptimized(model, graph))
    return;
  std::string lost;
  size_t count = 0;
  for (const std::string &target : metadata.parameterTargets) {
    if (known.count(target))
      continue;
    if (++count <= 5)
      lost += (count == 1 ? "'" : ", '") + target + "'";
  }
  if (count == 0)
    return;
  throw Failure("the exporter optimized this model, and " + std::to_string(count) + " of " +
                std::to_string(metadata.parameterTargets.size()) + " parameters are no longer in it (" + lost +
                (count > 5 ? ", ..." : "") +
                "); export with torch.onnx.export(..., optimize=False), or give the module's weights, whose values say "
                "where they are, with --weights FOLDER" +
                saysMore("optimized-export"));
}

/// Splits at the commas of depth 0.
static std::vector<std::string> splitArguments(const std::string &text) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (char c : text) {
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (c == ',' && depth == 0) {
      parts.push_back(part);
      part.clear();
    } else if (c != ' ' || !part.empty()) {
      part += c;
    }
  }
  if (!part.empty())
    parts.push_back(part);
  return parts;
}

FxCall fxCallOf(const onnx::NodeProto &node) {
  const std::string *text = findEntry(node.metadata_props(), "pkg.torch.onnx.fx_node");
  if (!text)
    return {};
  const size_t target = text->find("target="), arguments = text->find("(args = (");
  const size_t keywords = text->find("), kwargs = {"), end = text->rfind("})");
  if (target == std::string::npos || arguments == std::string::npos || keywords == std::string::npos ||
      end == std::string::npos || target + 8 > arguments || arguments + 9 > keywords || keywords + 13 > end)
    return {};
  FxCall call;
  call.target = text->substr(target + 7, arguments - target - 8);
  call.arguments = splitArguments(text->substr(arguments + 9, keywords - arguments - 9));
  for (const std::string &pair : splitArguments(text->substr(keywords + 13, end - keywords - 13)))
    if (const size_t colon = pair.find(": "); colon != std::string::npos)
      call.keywords.emplace_back(pair.substr(0, colon), pair.substr(colon + 2));
  return call;
}

double lostLabelSmoothing(const onnx::NodeProto &node) {
  // cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)
  const FxCall call = fxCallOf(node);
  if (call.target.find("cross_entropy_loss") == std::string::npos)
    return 0;
  for (const auto &[name, value] : call.keywords)
    if (name == "label_smoothing")
      return std::strtod(value.c_str(), nullptr);
  return call.arguments.size() > 5 ? std::strtod(call.arguments[5].c_str(), nullptr) : 0;
}

std::optional<int64_t> paddingIndexOf(const onnx::NodeProto &node) {
  // embedding(weight, indices, padding_idx = -1, ...)
  const FxCall call = fxCallOf(node);
  if (call.target.find("aten.embedding.default") == std::string::npos)
    return std::nullopt;
  std::string text = call.arguments.size() > 2 ? call.arguments[2] : "-1";
  for (const auto &[name, value] : call.keywords)
    if (name == "padding_idx")
      text = value;
  int64_t index = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  return error == std::errc() && end == text.data() + text.size() && index >= 0 ? std::optional(index) : std::nullopt;
}

bool lostBatchNormTraining(const onnx::NodeProto &node, const Metadata &metadata) {
  // _native_batch_norm_legit_functional(input, weight, bias, running_mean, running_var, training, momentum, eps)
  const FxCall call = fxCallOf(node);
  if (call.target.find("_native_batch_norm_legit_functional") != std::string::npos && call.arguments.size() > 5 &&
      call.arguments[5] == "True")
    return true;
  return node.input_size() > 3 && metadata.mutatedBuffers.count(node.input(3)) != 0;
}

void checkStateIsCarried(const FlatGraph &graph, const Metadata &metadata, const std::set<std::string> &needed) {
  std::set<std::string> statistics;
  for (const FlatNode &node : graph.nodes)
    if (node.proto->op_type() == "BatchNormalization" && node.proto->input_size() > 4)
      statistics.insert({node.proto->input(3), node.proto->input(4)});
  for (const std::string &buffer : metadata.mutatedBuffers)
    if (needed.count(buffer) && !statistics.count(buffer) && !metadata.state.count(buffer))
      throw Failure(
          "forward changes the buffer '" + buffer +
          "', and a plan would keep its first value, since the file does not say which value it gets: export " +
          "with models/export.py, compute it from the batch, or leave its update out of forward");
}

bool cameFrom(const onnx::NodeProto &node, std::string_view name) {
  const std::string *text = findEntry(node.metadata_props(), "pkg.torch.onnx.fx_node");
  static const std::string mark = "[target=torch.ops.";
  const size_t target = text ? text->find(mark) : std::string::npos;
  const size_t dot = target == std::string::npos ? target : text->find('.', target + mark.size());
  return dot != std::string::npos && text->compare(dot + 1, name.size(), name) == 0;
}

std::string whatIsNotSaid(const onnx::ModelProto &model, const FlatGraph &graph, const Metadata &metadata) {
  if (!metadata.fromPyTorch || !metadata.modelName.empty())
    return {};
  const bool saysDetach = !metadata.placeholders.empty() && !isOptimized(model, graph);
  return std::string("a file does not say what ") + (saysDetach ? "" : "detach(), ") +
         "torch.no_grad, autograd.Function and hooks do to gradients, nor what forward writes into buffers; a model "
         "that "
         "has such is to be exported with models/export.py, which compares with PyTorch";
}

bool isCacheName(const std::string &name) {
  // "past_key_values.0.key", "past_key_0", "present.3.value", "input.past_key_values.0.keys" where an output has the
  // same name; not "past_values", the data of a model of time series.
  static const std::regex start("(input\\.|output\\.)?((past|present)_(key_values?|key|value)([._0-9]|$)|"
                                "(past|present)[._]?[0-9]|cache_params)");
  return std::regex_search(name, start, std::regex_constants::match_continuous);
}

std::vector<std::string> sharedNormScales(const FlatGraph &graph) {
  std::map<std::string, int> uses;
  for (const FlatNode &node : graph.nodes)
    if (node.proto->op_type() == "LayerNormalization" && node.proto->input_size() > 1)
      ++uses[node.proto->input(1)];
  std::vector<std::string> shared;
  for (const auto &[name, count] : uses)
    if (count > 1)
      shared.push_back(name);
  return shared;
}

} // namespace ds::import
