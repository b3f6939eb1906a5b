//===- RecomputeSettings.cpp - deepstatic.recompute and its checkpoints ---===//
#include "compiler/config/Config.h"
#include "compiler/config/Hjson.h"
#include "compiler/config/Resolver.h"
#include "core/NearestName.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ds::config {
namespace {

using Mode = Recompute::Mode;

constexpr std::string_view path = "deepstatic.recompute", checkpoints = "activation_checkpointing.number_checkpoints";
constexpr size_t longestRule = 1000;
constexpr const char *off = "--set deepstatic.recompute=none";

std::string lower(std::string_view word) {
  std::string result(word);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return result;
}

void readWord(Resolver &resolver, std::string_view written, Recompute &recompute) {
  static constexpr std::string_view words[] = {"auto", "full", "none"};
  const std::string word = lower(written);
  if (word == "auto" || word == "full")
    recompute.mode = word == "full" ? Mode::Full : Mode::Auto;
  else if (word == "none")
    recompute.mode = Mode::Level;
  else
    resolver.refuse(
        path,
        R"(it takes "none", "full", "auto", a level or an object of {"REGEX": "save", "recompute" or "offload"}; the )"
        R"(nearest is ")" +
            std::string(nearestName(word, words)) + "\"",
        off);
}

void readRules(Resolver &resolver, const Node &object, Recompute &recompute) {
  static constexpr std::string_view words[] = {"save", "recompute", "offload"};
  recompute.mode = Mode::Rules;
  if (object.members.empty())
    return resolver.refuse(path, R"(it names no module; write {"REGEX": "recompute"}, or "none")", off);
  for (const Member &rule : object.members) {
    const std::string what = rule.value.kind == Node::Kind::String ? lower(rule.value.text) : "";
    const std::string place = "the rule " + printable(rule.key) + " is " + shortJson(rule.value);
    if (rule.key.empty() || rule.key.size() > longestRule)
      return resolver.refuse(path, rule.key.empty() ? "an empty expression names no module"
                                                    : "an expression has at most 1000 characters");
    if (std::ranges::find(words, what) == std::end(words))
      return resolver.refuse(
          path, place + R"(; it takes "save", "recompute" or "offload")" +
                    (what.empty() ? "" : ", the nearest is \"" + std::string(nearestName(what, words)) + "\""));
    recompute.rules.push_back({{rule.key, what == "recompute"}, what == "offload"});
  }
}

void readCheckpoints(Resolver &resolver, Recompute &recompute) {
  if (!resolver.find(checkpoints))
    return;
  const auto count = resolver.integer(checkpoints);
  if (!count || *count < 1)
    return resolver.refuse(checkpoints, "it is a number of checkpoints and must be at least 1");
  if (recompute.mode == Mode::Full)
    recompute.checkpoints = *count;
  else
    resolver.subsume(checkpoints, "has no effect unless deepstatic.recompute is \"full\"");
}

} // namespace

void resolveRecompute(Resolver &resolver, Config &config) {
  Recompute &recompute = config.recompute;
  readWord(resolver, resolver.defaultOf(path).text, recompute);
  if (const Node *value = resolver.find(path)) {
    if (const auto word = resolver.string(path))
      readWord(resolver, *word, recompute);
    else if (const auto level = resolver.integer(path)) {
      recompute.mode = Mode::Level;
      recompute.level = *level;
      if (*level < 0)
        resolver.refuse(path, "a level is at least 0, which computes nothing again", off);
    } else if (value->kind == Node::Kind::Object)
      readRules(resolver, *value, recompute);
  }
  readCheckpoints(resolver, recompute);
  config.cpuCheckpointing = resolver.boolean("activation_checkpointing.cpu_checkpointing").value_or(false);
}

} // namespace ds::config
