//===- Metadata.cpp - what exporters write beside the graph ------------------===//
#include "compiler/import/files/Metadata.h"

#include "compiler/import/files/Failure.h"
#include "compiler/import/files/Json.h"

#include <cmath>

namespace ds::import {

namespace json = llvm::json;

const std::string *findEntry(const Entries &entries, const std::string &key) {
  for (const onnx::StringStringEntryProto &entry : entries)
    if (entry.key() == key)
      return &entry.value();
  return nullptr;
}

[[noreturn]] static void malformed(const std::string &key, const std::string &expected) {
  throw Failure("the model's metadata '" + key + "' is not " + expected + "; models/export.py writes it so");
}

static std::vector<std::string> names(const json::Value &value, const std::string &key) {
  const json::Array *array = value.getAsArray();
  if (!array)
    malformed(key, "a list of names");
  std::vector<std::string> result;
  for (const json::Value &each : *array) {
    if (!each.getAsString())
      malformed(key, "a list of names");
    result.push_back(each.getAsString()->str());
  }
  return result;
}

static void readTrainable(const json::Value &value, Metadata &metadata) {
  const std::vector<std::string> list = names(value, "deepstatic.trainable");
  metadata.trainable.emplace(list.begin(), list.end());
}

static void readTied(const json::Value &value, Metadata &metadata) {
  const json::Array *groups = value.getAsArray();
  if (!groups)
    malformed("deepstatic.tied", "a list of lists of names");
  for (const json::Value &each : *groups) {
    const std::vector<std::string> group = names(each, "deepstatic.tied");
    for (const std::string &name : group)
      for (const std::string &other : group)
        if (other != name)
          metadata.aliases[name].push_back(other);
  }
}

static InitialValue initialValue(const json::Value &value) {
  const json::Object *object = value.getAsObject();
  const auto rule = object ? object->getString("rule") : std::nullopt;
  if (!rule)
    malformed("deepstatic.init", "an object of {\"rule\": ...} for each parameter");
  if (*rule == "zeros")
    return {InitialValue::Rule::Zeros};
  if (*rule == "ones")
    return {InitialValue::Rule::Ones};
  const auto mean = object->getNumber("mean"), deviation = object->getNumber("std");
  if ((*rule != "normal" && *rule != "uniform") || !mean || !deviation || !std::isfinite(*mean) ||
      !std::isfinite(*deviation) || *deviation < 0)
    malformed("deepstatic.init", "made of the rules zeros, ones, and normal and uniform with a mean and a std");
  return {*rule == "normal" ? InitialValue::Rule::Normal : InitialValue::Rule::Uniform, *mean, *deviation};
}

static void readInitial(const json::Value &value, Metadata &metadata) {
  const json::Object *object = value.getAsObject();
  if (!object)
    malformed("deepstatic.init", "an object of {\"rule\": ...} for each parameter");
  for (const auto &[name, rule] : *object)
    metadata.initial.emplace(name.str(), initialValue(rule));
}

static void readTokens(const json::Value &value, Metadata &metadata) {
  const json::Object *object = value.getAsObject();
  if (!object)
    malformed("deepstatic.tokens", "an object of input names to \"same\" or \"next\"");
  for (const auto &[name, how] : *object) {
    const auto text = how.getAsString();
    if (!text || (*text != "same" && *text != "next"))
      malformed("deepstatic.tokens", "an object of input names to \"same\" or \"next\"");
    metadata.tokens.emplace(name.str(), text->str());
  }
}

static void readState(const json::Value &value, Metadata &metadata) {
  constexpr const char *form =
      "an object of buffers to {\"value\": an output, \"evaluation\": \"kept\" or \"computed\"}";
  const json::Object *object = value.getAsObject();
  if (!object)
    malformed("deepstatic.state", form);
  for (const auto &[name, entry] : *object) {
    const json::Object *carried = entry.getAsObject();
    const auto output = carried ? carried->getString("value") : std::nullopt;
    const auto evaluation = carried ? carried->getString("evaluation") : std::nullopt;
    if (!output || !evaluation || (*evaluation != "kept" && *evaluation != "computed"))
      malformed("deepstatic.state", form);
    metadata.state[name.str()] = {output->str(), *evaluation == "kept"};
  }
}

static void readModes(const json::Value &value, Metadata &metadata) {
  const std::vector<std::string> list = names(value, "deepstatic.modes");
  metadata.modes = {list.begin(), list.end()};
}

static void readModelName(const json::Value &value, Metadata &metadata) {
  if (const auto text = value.getAsString())
    metadata.modelName = text->str();
  else if (const json::Object *object = value.getAsObject())
    metadata.modelName = object->getString("name").value_or("").str();
}

/// The names in lines "p_x: PARAMETER target='a.b.weight'" of the graph signature.
static std::vector<std::string> targetsOf(const std::string &kind, const std::string &signature) {
  const std::string mark = ": " + kind + " target='";
  std::vector<std::string> targets;
  for (size_t at = signature.find(mark); at != std::string::npos; at = signature.find(mark, at)) {
    at += mark.size();
    const size_t end = signature.find('\'', at);
    if (end == std::string::npos)
      break;
    targets.push_back(signature.substr(at, end - at));
  }
  return targets;
}

static void readValue(const onnx::ValueInfoProto &value, Metadata &metadata) {
  static const std::string prefix = "pkg.torch.export.graph_signature.InputSpec.";
  const std::string *kind = findEntry(value.metadata_props(), prefix + "kind");
  const std::string *persistent = findEntry(value.metadata_props(), prefix + "persistent");
  if (kind)
    metadata.values[value.name()] = {*kind, persistent && *persistent == "True"};
}

static void readSignature(const std::string &signature, Metadata &metadata) {
  metadata.parameterTargets = targetsOf("PARAMETER", signature);
  static const std::string mark = ": PARAMETER target='"; // behind the placeholder, which begins its line
  for (size_t at = signature.find(mark); at != std::string::npos; at = signature.find(mark, at + 1)) {
    const size_t line = signature.rfind('\n', at), begin = line == std::string::npos ? 0 : line + 1;
    const size_t target = at + mark.size(), end = signature.find('\'', target);
    if (end != std::string::npos)
      metadata.placeholders[signature.substr(begin, at - begin)] = signature.substr(target, end - target);
  }
  for (std::string &name : targetsOf("BUFFER_MUTATION", signature))
    metadata.mutatedBuffers.insert(std::move(name));
}

Metadata readMetadata(const onnx::ModelProto &model) {
  Metadata metadata;
  metadata.fromPyTorch = model.producer_name() == "pytorch";
  using Reader = void (*)(const json::Value &, Metadata &);
  static const std::pair<const char *, Reader> readers[] = {
      {"deepstatic.model", readModelName}, {"deepstatic.trainable", readTrainable}, {"deepstatic.tied", readTied},
      {"deepstatic.init", readInitial},    {"deepstatic.tokens", readTokens},       {"deepstatic.state", readState},
      {"deepstatic.modes", readModes}};
  for (const auto &[key, read] : readers)
    if (const std::string *text = findEntry(model.metadata_props(), key))
      read(parseJson(*text, std::string("the model's metadata '") + key + "'"), metadata);
  const onnx::GraphProto &graph = model.graph();
  for (const auto *list : {&graph.value_info(), &graph.input()})
    for (const onnx::ValueInfoProto &value : *list)
      readValue(value, metadata);
  if (const std::string *signature =
          findEntry(graph.metadata_props(), "pkg.torch.export.ExportedProgram.graph_signature"))
    readSignature(*signature, metadata);
  return metadata;
}

std::string scopeOf(const onnx::NodeProto &node) {
  const std::string *text = findEntry(node.metadata_props(), "pkg.torch.onnx.name_scopes");
  if (!text)
    return {};
  std::vector<std::string> scopes; // between single quotes, as Python prints a list of names
  for (size_t at = text->find('\''); at != std::string::npos; at = text->find('\'', at + 1)) {
    const size_t end = text->find('\'', at + 1);
    if (end == std::string::npos)
      break;
    scopes.push_back(text->substr(at + 1, end - at - 1));
    at = end;
  }
  std::string result, parent;
  for (size_t i = 0; i + 1 < scopes.size(); ++i) {
    if (scopes[i].empty())
      continue;
    const bool nested = !parent.empty() && scopes[i].starts_with(parent + ".");
    result += (result.empty() ? "" : "/") + (nested ? scopes[i].substr(parent.size() + 1) : scopes[i]);
    parent = scopes[i];
  }
  return result;
}

} // namespace ds::import
