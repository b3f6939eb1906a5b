//===- Node.cpp - what one does with a value that was read ----------------===//
#include "compiler/config/Hjson.h"

#include "core/Json.h"

#include <cstddef>

#include <algorithm>
#include <string>
#include <string_view>

namespace ds::config {
namespace {

void append(std::string &json, const Node &node) {
  switch (node.kind) {
  case Node::Kind::Null:
    json += "null";
    break;
  case Node::Kind::Bool:
    json += node.boolean ? "true" : "false";
    break;
  case Node::Kind::Int:
    json += std::to_string(node.integer);
    break;
  case Node::Kind::Float:
    json += Json(node.number).dump();
    break;
  case Node::Kind::String:
    json += Json(node.text).dump();
    break;
  case Node::Kind::Array:
    json += '[';
    for (const Node &item : node.items) {
      if (&item != &node.items.front())
        json += ", ";
      append(json, item);
    }
    json += ']';
    break;
  case Node::Kind::Object:
    json += '{';
    for (const Member &member : node.members) {
      if (&member != &node.members.front())
        json += ", ";
      json += Json(member.key).dump() + ": ";
      append(json, member.value);
    }
    json += '}';
    break;
  }
}

bool isNumber(const Node &node) { return node.kind == Node::Kind::Int || node.kind == Node::Kind::Float; }

} // namespace

std::string toJson(const Node &node) {
  std::string json;
  append(json, node);
  return json;
}

Json asJson(const Node &node) {
  Json json;
  switch (node.kind) {
  case Node::Kind::Null:
    return nullptr;
  case Node::Kind::Bool:
    return node.boolean;
  case Node::Kind::Int:
    return node.integer;
  case Node::Kind::Float:
    return node.number;
  case Node::Kind::String:
    return node.text;
  case Node::Kind::Array:
    json = Json::array();
    for (const Node &item : node.items)
      json.push_back(asJson(item));
    return json;
  case Node::Kind::Object:
    json = Json::object();
    for (const Member &member : node.members)
      json[member.key] = asJson(member.value);
    return json;
  }
  return json;
}

bool sameValue(const Node &a, const Node &b) {
  if (isNumber(a) && isNumber(b))
    return a.kind == b.kind && a.kind == Node::Kind::Int ? a.integer == b.integer : a.number == b.number;
  if (a.kind != b.kind || a.boolean != b.boolean || a.text != b.text || a.items.size() != b.items.size() ||
      a.members.size() != b.members.size())
    return false;
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), sameValue) &&
         std::all_of(a.members.begin(), a.members.end(), [&](const Member &m) {
           const Node *other = member(b, m.key);
           return other && sameValue(m.value, *other);
         });
}

const Node *member(const Node &object, std::string_view key) {
  for (const Member &m : object.members)
    if (m.key == key)
      return &m.value;
  return nullptr;
}

Node *member(Node &object, std::string_view key) {
  return const_cast<Node *>(member(static_cast<const Node &>(object), key));
}

const Node *at(const Node &object, std::string_view path) {
  const Node *node = &object;
  while (node) {
    const size_t dot = path.find('.');
    node = member(*node, path.substr(0, dot));
    if (dot == std::string_view::npos)
      return node;
    path.remove_prefix(dot + 1);
  }
  return nullptr;
}

} // namespace ds::config
