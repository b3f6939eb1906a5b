//===- ParameterGroups.cpp - deepstatic.parameter_groups ------------------===//
#include "compiler/config/Config.h"
#include "compiler/config/Hjson.h"
#include "compiler/config/KnownKeys.h"
#include "compiler/config/Resolver.h"

#include <string>
#include <string_view>

namespace ds::config {
namespace {

constexpr std::string_view path = "deepstatic.parameter_groups";
constexpr size_t longestPattern = 1000;

/// A group's number of at least 0, or a refusal.
double readNumber(Resolver &resolver, const std::string &place, const Member &member) {
  const bool isNumber = member.value.kind == Node::Kind::Int || member.value.kind == Node::Kind::Float;
  if (!isNumber || !(member.value.number >= 0 && member.value.number <= 1e300))
    resolver.refuse(path, place + " has " + member.key + " " + shortJson(member.value) + "; it must be at least 0");
  return member.value.number;
}

void readMember(Resolver &resolver, const std::string &place, const Member &member, ParameterGroup &group) {
  if (member.key == "match") {
    if (member.value.kind != Node::Kind::String || member.value.text.empty() ||
        member.value.text.size() > longestPattern)
      resolver.refuse(path, place + " has match " + shortJson(member.value) + "; it must be a regular expression");
    group.match = member.value.text;
  } else if (member.key == "weight_decay") {
    group.weightDecay = readNumber(resolver, place, member);
  } else if (member.key == "lr_factor") {
    group.lrFactor = readNumber(resolver, place, member);
  } else {
    resolver.refuse(path,
                    place + " has " + printable(member.key) + "; match, weight_decay and lr_factor are available");
  }
}

} // namespace

void resolveParameterGroups(Resolver &resolver, Config &config) {
  const Node *list = resolver.find(path);
  if (!list || list->kind != Node::Kind::Array)
    return; // none, or refused for its type
  for (const Node &item : list->items) {
    const std::string place = "group " + std::to_string(config.parameterGroups.size() + 1);
    ParameterGroup group;
    for (const Member &member : item.members)
      readMember(resolver, place, member, group);
    if (!member(item, "match"))
      return resolver.refuse(
          path, place + R"( says of no parameter that it is its; write {"match": REGEX, "weight_decay": 0})");
    config.parameterGroups.push_back(group);
  }
  if (!config.parameterGroups.empty() && config.optimizer.type == Optimizer::Type::None)
    resolver.refuse(path, "groups change what optimizer.type does, which is missing");
}

} // namespace ds::config
