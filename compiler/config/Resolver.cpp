//===- Resolver.cpp - an answer for every key -----------------------------===//
#include "compiler/config/Resolver.h"

#include "compiler/config/AutoValues.h"
#include "compiler/config/Config.h"
#include "compiler/config/Hjson.h"
#include "compiler/config/KeyRules.h"
#include "compiler/config/KnownKeys.h"
#include "compiler/config/Utf8.h"
#include "core/NearestName.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::config {
namespace {

constexpr int mostGuesses = 50;                      // unknown keys that are answered with the nearest real one
constexpr size_t longestValue = 80, longestKey = 80; // bytes, in messages

std::string join(const std::string &path, const std::string &key) { return path.empty() ? key : path + "." + key; }

bool equalIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool isWhole(const Node &value) {
  return value.kind == Node::Kind::Int || (value.kind == Node::Kind::Float &&
                                           std::trunc(value.number) == value.number && std::abs(value.number) < 0x1p62);
}

/// Whether a value is of one of the types `type`, joined by '|'.
bool isOfType(const Node &value, std::string_view type) {
  for (size_t begin = 0; begin <= type.size();) {
    const size_t end = std::min(type.find('|', begin), type.size());
    const std::string_view one = type.substr(begin, end - begin);
    using Kind = Node::Kind;
    const Kind kind = value.kind;
    if (one == "any" || (one == "null" && kind == Kind::Null) || (one == "str" && kind == Kind::String) ||
        (one == "object" && kind == Kind::Object) || (one == "int" && isWhole(value)) ||
        (one == "float" && (kind == Kind::Int || kind == Kind::Float)) ||
        ((one == "list" || one == "tuple") && kind == Kind::Array) ||
        (one == "bool" && (kind == Kind::Bool || (kind == Kind::Int && (value.integer == 0 || value.integer == 1)))))
      return true;
    begin = end + 1;
  }
  return false;
}

/// "int|null" -> "an int or null".
std::string typeInWords(std::string_view type) {
  std::string words = (type.starts_with("int") || type.starts_with("o") ? "an " : "a ") + std::string(type);
  for (size_t bar = words.find('|'); bar != std::string::npos; bar = words.find('|', bar))
    words.replace(bar, 1, " or ");
  return words;
}

bool isAllowed(const Node &value, const KnownKey &key) {
  if (key.values.empty() || value.kind == Node::Kind::Null)
    return true;
  const Node allowed = parseHjsonValue(key.values, "values");
  return std::any_of(allowed.items.begin(), allowed.items.end(), [&](const Node &one) {
    return sameValue(one, value) || (one.kind == Node::Kind::String && value.kind == Node::Kind::String &&
                                     equalIgnoringCase(one.text, value.text));
  });
}

/// "; the nearest is "gpipe"", where the values are strings.
std::string nearestOf(const Node &value, const KnownKey &key) {
  const Node allowed = parseHjsonValue(key.values, "values");
  std::vector<std::string_view> names;
  for (const Node &one : allowed.items)
    if (one.kind == Node::Kind::String)
      names.push_back(one.text);
  return value.kind != Node::Kind::String || names.empty()
             ? ""
             : "; the nearest is \"" + std::string(nearestName(value.text, names)) + "\"";
}

} // namespace

std::string printable(std::string_view key) {
  const bool plain = !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-';
  });
  const std::string text = shorten(std::string(key), longestKey);
  return plain ? text : nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string shortJson(const Node &value) { return shorten(toJson(value), longestValue); }

Resolver::Resolver(std::string_view hjsonText, const ConfigOverrides &overrides)
    : fileName_(overrides.fileName), root_(parseHjson(hjsonText, overrides.fileName)) {
  renameAliases(root_, "", fileName_);
  for (const std::string &set : overrides.sets)
    applySet(root_, set);
  replaceAutos(root_, "", overrides);
}

void Resolver::answerKeys() {
  if (root_.kind == Node::Kind::Object)
    for (const Member &m : root_.members)
      if (m.key == "compute_environment" || m.key == "distributed_type")
        throw ConfigError(fileName_ + " is a file of accelerate's, not DeepSpeed's: it has " + m.key +
                          "; give the ds_config.json that its deepspeed_config_file names, or write one");
  answerMembers(root_, "", "");
}

void Resolver::answerMembers(const Node &object, const std::string &path, const std::string &written) {
  for (const Member &m : object.members)
    answer(m.value, join(path, printable(m.key)), join(written, printable(m.written.empty() ? m.key : m.written)));
}

void Resolver::answer(const Node &value, const std::string &path, const std::string &written) {
  const KnownKey *key = findKey(path);
  const bool section = isSection(path) && !(key && key->removed), object = value.kind == Node::Kind::Object;
  if (section && object && !value.members.empty())
    return answerMembers(value, path, written);
  if (path.starts_with("optimizer.params.") || path.starts_with("scheduler.params."))
    return answerParameter(value, path, written);
  if (section && (object || (value.kind == Node::Kind::Null && !key)))
    return accept(value, path, written, "honoured", "nothing is set in it");
  if (key)
    return answerKnown(value, *key, path, written);
  if (section)
    return reject(value, path, written, "it is a section and takes an object of keys");
  if (object && !value.members.empty())
    return answerMembers(value, path, written);
  answerUnknown(value, path, written);
}

bool Resolver::wellTyped(const Node &value, const KnownKey &key, const std::string &written) {
  const auto refuseWith = [&](const std::string &reason) {
    reject(value, std::string(key.path), written, reason);
    return false;
  };
  if (isAuto(value, key)) {
    const auto [reason, instead] = refusalOfAuto(key.path);
    if (!instead.empty())
      suggest("--set " + std::string(key.path) + "=" + std::string(instead));
    return refuseWith(std::string(reason));
  }
  if (!isOfType(value, key.type))
    return refuseWith("it takes " + typeInWords(key.type) +
                      (value.kind == Node::Kind::String && value.text.ends_with(',')
                           ? "; an unquoted string takes the rest of its line, the comma included"
                           : ""));
  if (!isAllowed(value, key))
    return refuseWith("it takes one of " + std::string(key.values) + nearestOf(value, key));
  return true;
}

void Resolver::answerKnown(const Node &value, const KnownKey &key, const std::string &path,
                           const std::string &written) {
  if (key.removed) {
    suggest("--set " + path + "=null");
    return reject(value, path, written, "DeepSpeed has removed this key; leave it out");
  }
  KnownKey here = key; // a `*` in the table is a name here
  here.path = path;
  if (!wellTyped(value, here, written))
    return;
  const KeyRule rule = ruleFor(path);
  if (rule.treatment == Treatment::Honoured)
    return accept(value, path, written, "honoured", rule.note);
  if (answerBySwitch(value, path, written))
    return;
  if (rule.treatment == Treatment::Subsumed)
    return accept(value, path, written, "subsumed", rule.note);
  // What is off by being false asks for nothing, whatever the default.
  std::string_view also = path.ends_with(".enabled") ? "false" : rule.also;
  also = also == key.fallback ? "" : also;
  const bool quantized = path == "weight_quantization.enabled"; // on by default, and not available
  if (isDefault(value, quantized ? "false" : key.fallback, also))
    return accept(value, path, written, rule.note.empty() ? "honoured" : "subsumed", rule.note);
  suggest("--set " + path + "=" + std::string(quantized ? "false" : key.fallback));
  for (const std::string_view offload : {"offload_optimizer", "offload_param"})
    if (path ==
        (offload == "offload_param" ? "zero_optimization.cpu_offload_param" : "zero_optimization.cpu_offload")) {
      const std::string device = "zero_optimization." + std::string(offload) + ".device";
      suggest("--set " + device + "=\"cpu\"");
      return reject(value, path, written, "this is the old name of " + device + " \"cpu\"; write that");
    }
  reject(value, path, written,
         "this is not available yet, only " + (also.empty() ? "" : std::string(also) + " and ") +
             std::string(key.fallback) + (also.empty() ? " is" : " are") +
             (rule.note.empty() ? "" : "; " + std::string(rule.note)) +
             (path == "wandb.enabled" ? "; tensorboard writes files that `wandb sync FOLDER` imports" : ""));
}

/// What a section's switch says of its other keys: they have no effect, or belong to what is refused.
bool Resolver::answerBySwitch(const Node &value, const std::string &path, const std::string &written) {
  for (const OffSwitch &off : offSwitches()) {
    if (!governs(off, path))
      continue;
    const std::string name = std::string(off.section) + "." + std::string(off.key);
    const Node *state = find(name);
    if (state ? isDefault(*state, off.off, "") : findKey(name)->fallback == off.off) {
      accept(value, path, written, "subsumed", "has no effect while " + name + " is " + std::string(off.off));
      return true;
    }
    if (state && ruleFor(name).treatment == Treatment::DefaultOnly) { // said once, at the switch
      accept(value, path, written, "rejected", name + " is not available");
      return true;
    }
  }
  return false;
}

/// Whether some optimizer or schedule has such a parameter.
static bool isParameterOfAnother(bool optimizer, std::string_view name) {
  const auto among = [&](std::span<const Parameter> parameters) {
    return std::ranges::any_of(parameters, [&](const Parameter &parameter) { return parameter.key.path == name; });
  };
  if (optimizer)
    return std::ranges::any_of(availableOptimizers(), [&](auto type) { return among(optimizerParameters(type)); });
  return std::ranges::any_of(availableSchedulers(), [&](auto type) { return among(schedulerParameters(type)); });
}

void Resolver::answerParameter(const Node &value, const std::string &path, const std::string &written) {
  const std::string section = path.substr(0, path.find('.')), name = path.substr(section.size() + 8);
  const bool optimizer = section == "optimizer";
  const auto type = string(section + ".type");
  const auto available = !type ? std::nullopt : optimizer ? availableOptimizer(*type) : availableScheduler(*type);
  if (!available) // said once, at the type
    return accept(value, path, written, "rejected", section + ".type is not available");
  const std::span<const Parameter> parameters =
      optimizer ? optimizerParameters(*available) : schedulerParameters(*available);
  std::vector<std::string_view> names;
  for (const Parameter &parameter : parameters) {
    names.push_back(parameter.key.path);
    if (parameter.key.path != name)
      continue;
    KnownKey here = parameter.key;
    here.path = path;
    if (!wellTyped(value, here, written))
      return;
    if (parameter.treatment == Treatment::DefaultOnly && !isDefault(value, here.fallback, "")) {
      suggest("--set " + path + "=" + std::string(here.fallback));
      return reject(value, path, written, "this is not available yet, only " + std::string(here.fallback) + " is");
    }
    return accept(value, path, written, parameter.treatment == Treatment::Subsumed ? "subsumed" : "honoured",
                  parameter.treatment == Treatment::Subsumed ? parameter.note : "");
  }
  if (value.kind == Node::Kind::Null)
    return accept(value, path, written, "honoured", "nothing is set in it");
  if (optimizer && name == "max_grad_norm") {
    suggest("--set " + path + "=null");
    if (!number("gradient_clipping"))
      suggest("--set gradient_clipping=" + toJson(value));
    return reject(value, path, written, "DeepSpeed takes the largest norm from gradient_clipping; write it there");
  }
  if (isParameterOfAnother(optimizer, name))
    suggest("--set " + path + "=null"); // it is meant, and not for this one
  reject(value, path, written,
         std::string(*available) + " has no such parameter; the nearest is " + section + ".params." +
             std::string(nearestName(name, names)));
}

void Resolver::answerUnknown(const Node &value, const std::string &path, const std::string &written) {
  if (value.kind == Node::Kind::Null)
    return accept(value, path, written, "honoured", "nothing is set in it");
  if (path.starts_with("bf16.") && findKey("fp16." + path.substr(5)) != nullptr) {
    suggest("--set " + path + "=null");
    return reject(value, path, written,
                  "no such key, as bfloat16 has float32's range and needs no loss scale; leave it out");
  }
  if (++unknownKeys_ > mostGuesses)
    return reject(value, path, written, "no such key");
  reject(value, path, written, "no such key; the nearest is " + nearestKey(path));
}

bool Resolver::isDefault(const Node &value, std::string_view fallback, std::string_view also) const {
  const auto is = [&](std::string_view json) {
    if (json.empty())
      return false;
    Node expected = parseHjsonValue(json, "default");
    if (expected.kind == Node::Kind::Bool && value.kind == Node::Kind::Int)
      return expected.boolean == (value.integer != 0);
    if (expected.kind == Node::Kind::String && value.kind == Node::Kind::String)
      return equalIgnoringCase(expected.text, value.text);
    return sameValue(expected, value);
  };
  return is(fallback) || is(also) || value.kind == Node::Kind::Null;
}

std::string Resolver::where(const Node &value, const std::string &written) const {
  return (value.line > 0 ? fileName_ + ":" + std::to_string(value.line) : "--set") + ": " + written;
}

void Resolver::accept(const Node &value, const std::string &path, const std::string &written, std::string_view status,
                      std::string_view note) {
  answers_.push_back({written, toJson(value), std::string(status), std::string(note)});
  answeredPaths_.push_back(path);
}

void Resolver::reject(const Node &value, const std::string &path, const std::string &written,
                      const std::string &reason) {
  accept(value, path, written, "rejected", reason);
  problems_.push_back(where(value, written) + " is " + shortJson(value) + "; " + reason);
}

/// One flag for a key is enough.
void Resolver::suggest(const std::string &flag) {
  const std::string key = flag.substr(0, flag.find('='));
  if (std::none_of(remedies_.begin(), remedies_.end(),
                   [&](const std::string &other) { return other.substr(0, other.find('=')) == key; }))
    remedies_.push_back(flag);
}

void Resolver::refuse(std::string_view path, const std::string &reason, const std::string &remedy) {
  if (!remedy.empty())
    suggest(remedy);
  const Node *value = find(path);
  std::string written(path);
  for (size_t i = 0; i < answers_.size(); ++i)
    if (answeredPaths_[i] == path) {
      answers_[i].status = "rejected";
      answers_[i].note = reason;
      written = answers_[i].path;
    }
  problems_.push_back(value ? where(*value, written) + " is " + shortJson(*value) + "; " + reason
                            : fileName_ + ": " + written + " is missing; " + reason);
}

void Resolver::subsume(std::string_view path, const std::string &reason) {
  for (size_t i = 0; i < answers_.size(); ++i)
    if (answeredPaths_[i] == path && answers_[i].status == "honoured") {
      answers_[i].status = "subsumed";
      answers_[i].note = reason;
    }
}

void Resolver::refuseWhole(const std::string &sentence, const std::string &remedy) {
  if (!remedy.empty())
    suggest(remedy);
  problems_.push_back(fileName_ + ": " + sentence);
}

void Resolver::finish(Config &config) {
  for (const AutoValue &value : autos_)
    for (size_t i = 0; i < answers_.size(); ++i)
      if (answeredPaths_[i] == value.path) {
        std::string &note = answers_[i].note;
        answers_[i].valueJson = value.valueJson;
        note = "\"auto\": " + value.why + (note.empty() ? "" : "; " + note);
      }
  if (problems_.empty()) {
    config.answers = std::move(answers_);
    config.autos = std::move(autos_);
    return;
  }
  const std::string first = problems_.front();
  problems_.erase(problems_.begin());
  std::string line;
  for (const std::string &flag : remedies_)
    line += (line.empty() ? "" : " ") + flag;
  throw ConfigError(first, std::move(problems_), std::move(answers_), line);
}

const Node *Resolver::find(std::string_view path) const {
  const Node *value = at(root_, path);
  return value && value->kind != Node::Kind::Null ? value : nullptr;
}

std::optional<double> Resolver::number(std::string_view path) const {
  const Node *value = find(path);
  return value && isOfType(*value, "float") ? std::optional(value->number) : std::nullopt;
}

std::optional<int64_t> Resolver::integer(std::string_view path) const {
  const Node *value = find(path);
  if (!value || !isWhole(*value))
    return std::nullopt;
  return value->kind == Node::Kind::Int ? value->integer : int64_t(value->number);
}

std::optional<bool> Resolver::boolean(std::string_view path) const {
  const Node *value = find(path);
  if (!value || !isOfType(*value, "bool"))
    return std::nullopt;
  return value->kind == Node::Kind::Bool ? value->boolean : value->integer != 0;
}

std::optional<std::string_view> Resolver::string(std::string_view path) const {
  const Node *value = find(path);
  return value && value->kind == Node::Kind::String ? std::optional<std::string_view>(value->text) : std::nullopt;
}

Node Resolver::defaultOf(std::string_view path) const {
  for (const std::string_view section : {"optimizer", "scheduler"}) {
    const std::string prefix = std::string(section) + ".params.";
    const auto type = path.starts_with(prefix) ? string(std::string(section) + ".type") : std::nullopt;
    if (!type)
      continue;
    const bool optimizer = section == "optimizer";
    const auto available = optimizer ? availableOptimizer(*type) : availableScheduler(*type);
    if (!available) // refused
      continue;
    for (const Parameter &parameter : optimizer ? optimizerParameters(*available) : schedulerParameters(*available))
      if (parameter.key.path == path.substr(prefix.size()))
        return parameter.key.fallback.empty() ? Node() : parseHjsonValue(parameter.key.fallback, "default");
  }
  return parseHjsonValue(findKey(path)->fallback, "default");
}

double Resolver::numberOrDefault(std::string_view path) const {
  const auto written = number(path);
  return written ? *written : defaultOf(path).number;
}

int64_t Resolver::integerOrDefault(std::string_view path) const {
  const auto written = integer(path);
  return written ? *written : defaultOf(path).integer;
}

bool Resolver::booleanOrDefault(std::string_view path) const {
  const auto written = boolean(path);
  return written ? *written : defaultOf(path).boolean;
}

std::string Resolver::stringOrDefault(std::string_view path) const {
  const auto written = string(path);
  return written ? std::string(*written) : defaultOf(path).text;
}

} // namespace ds::config
