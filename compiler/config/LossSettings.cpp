//===- LossSettings.cpp - deepstatic.loss ---------------------------------===//
#include "compiler/config/Config.h"
#include "compiler/config/Hjson.h"
#include "compiler/config/Resolver.h"
#include "core/NearestName.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace ds::config {
namespace {

constexpr std::string_view path = "deepstatic.loss";

void readKind(Resolver &resolver, std::string_view word, AttachedLoss &loss) {
  if (const std::optional<LossKind> kind = lossKindFromName(word)) {
    loss.kind = *kind;
    return;
  }
  std::array<std::string_view, lossKinds.size()> words;
  std::string list;
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = lossKinds[i].first;
    list += (i == 0 ? "" : ", ") + std::string(words[i]);
  }
  resolver.refuse(path, "its kinds are " + list + "; the nearest is " + std::string(nearestName(word, words)));
}

bool readWeights(const Node &list, std::vector<double> &weights) {
  for (const Node &item : list.items) {
    const bool isNumber = item.kind == Node::Kind::Int || item.kind == Node::Kind::Float;
    if (!isNumber || !std::isfinite(item.number) || item.number < 0)
      return false;
    weights.push_back(item.number);
  }
  return std::ranges::any_of(weights, [](double weight) { return weight > 0; });
}

void readMember(Resolver &resolver, const Member &member, AttachedLoss &loss) {
  const Node &value = member.value;
  const bool isInt = value.kind == Node::Kind::Int, isText = value.kind == Node::Kind::String;
  const auto refuse = [&](const char *must) {
    resolver.refuse(path, printable(member.key) + " is " + shortJson(value) + " and must be " + must);
  };
  if (member.key == "kind") {
    isText ? readKind(resolver, value.text, loss) : refuse("a text such as \"causal-lm\"");
  } else if (member.key == "label_smoothing") {
    if ((!isInt && value.kind != Node::Kind::Float) || !(value.number >= 0 && value.number < 1))
      return refuse("at least 0 and less than 1");
    loss.labelSmoothing = value.number;
  } else if (member.key == "ignore_index") {
    isInt ? void(loss.ignoreIndex = value.integer) : refuse("a whole number");
  } else if (member.key == "class_weights") {
    readWeights(value, loss.classWeights)
        ? void()
        : refuse("a list of finite numbers, one for each class, at least 0, not all 0");
  } else if (member.key == "pos_weight") {
    readWeights(value, loss.posWeight)
        ? void()
        : refuse("a list of finite numbers, one for each class or one for all, at least 0, not all 0");
  } else if (member.key == "file") {
    isText && !value.text.empty() ? void(loss.file = value.text) : refuse("the path of an ONNX file");
  } else if (member.key == "sha256") {
    isText ? void(loss.sha256 = value.text) : refuse("the digest of the file, in hexadecimal");
  } else if (member.key == "logits") {
    isText && !value.text.empty() ? void(loss.logits = value.text) : refuse("the name of an output");
  } else {
    resolver.refuse(
        path, "it has " + printable(member.key) +
                  "; kind, file, label_smoothing, ignore_index, class_weights, pos_weight and logits are available");
  }
}

} // namespace

void resolveLoss(Resolver &resolver, Config &config) {
  const Node *written = resolver.find(path);
  if (!written || (written->kind != Node::Kind::String && written->kind != Node::Kind::Object))
    return; // none, or refused for its type
  AttachedLoss &loss = config.loss.emplace();
  if (written->kind == Node::Kind::String)
    return readKind(resolver, written->text, loss);
  const bool isFile = member(*written, "file") != nullptr;
  if (!isFile && !member(*written, "kind"))
    return resolver.refuse(path, R"(it has no kind; write {"kind": "causal-lm"}, or {"file": "loss.onnx"})");
  const size_t keys = member(*written, "sha256") ? 2 : 1;
  if (isFile && written->members.size() > keys)
    return resolver.refuse(path,
                           R"(a file is the whole loss, and no other key goes with it; write {"file": "loss.onnx"})");
  for (const Member &each : written->members)
    readMember(resolver, each, loss);
  if (!isFile && !choosesClass(loss.kind))
    for (const char *key : {"label_smoothing", "ignore_index", "class_weights"})
      if (member(*written, key))
        resolver.refuse(path, std::string(key) + " belongs to labels that are classes; those of " +
                                  std::string(name(loss.kind)) + " are floats");
  if (!isFile && loss.kind != LossKind::MultiLabel && member(*written, "pos_weight"))
    resolver.refuse(path, "pos_weight belongs to multi-label; " + std::string(name(loss.kind)) +
                              (choosesClass(loss.kind) ? " has class_weights" : " has none"));
}

} // namespace ds::config
