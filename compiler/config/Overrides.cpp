//===- Overrides.cpp - other names of keys, and --set ---------------------===//
#include "compiler/config/Config.h"
#include "compiler/config/Hjson.h"
#include "compiler/config/KnownKeys.h"
#include "compiler/config/Resolver.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace ds::config {
namespace {

std::string join(const std::string &path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

/// The last key of the path that `path`.`key` stands for.
std::string_view meaning(const std::string &path, const std::string &key) {
  if (key.find('.') != std::string::npos)
    return key; // one key with a dot, not a path
  const KnownKey *known = findKey(join(path, key));
  return known && !known->alias.empty() ? known->alias.substr(known->alias.rfind('.') + 1) : std::string_view(key);
}

[[noreturn]] void refuseKeysBelow(const Node &value, const std::string &path, const std::string &what) {
  throw ConfigError(what + ": " + path + " is " + shortJson(value) + ", which has no keys below it");
}

/// Leaves the key out, as if it were not written.
void removeKey(Node &root, const std::string &path, const std::string &what) {
  Node *object = &root;
  std::string section;
  for (size_t begin = 0; object != nullptr;) {
    const size_t dot = path.find('.', begin);
    const std::string key(meaning(section, path.substr(begin, dot - begin)));
    section = join(section, key);
    if (dot == std::string::npos) {
      const size_t before = object->members.size();
      std::erase_if(object->members, [&](const Member &m) { return m.key == key; });
      if (object->members.size() < before)
        return;
      break;
    }
    object = member(*object, key);
    begin = dot + 1;
  }
  if (findKey(section) == nullptr && !isSection(section))
    throw ConfigError(what + ": there is no such key to leave out; the nearest is " + nearestKey(section));
}

constexpr size_t longestPath = 200; // bytes; bounds the nesting that --set can make

} // namespace

void renameAliases(Node &object, const std::string &path, const std::string &fileName) {
  for (size_t i = 0; i < object.members.size();) {
    Member &m = object.members[i];
    const std::string key(meaning(path, m.key));
    if (key == m.key) {
      ++i;
      continue;
    }
    if (const Node *twin = member(object, key)) {
      if (!sameValue(*twin, m.value))
        throw ConfigError(fileName + ":" + std::to_string(m.value.line) + ": " + join(path, m.key) + " is " +
                          shortJson(m.value) + " but " + join(path, key) + ", which it is another name of, is " +
                          shortJson(*twin) + " on line " + std::to_string(twin->line) + "; remove one of them");
      object.members.erase(object.members.begin() + ptrdiff_t(i));
      continue;
    }
    m.written = std::exchange(m.key, key);
    ++i;
  }
  for (Member &m : object.members)
    if (m.value.kind == Node::Kind::Object && m.key.find('.') == std::string::npos && isSection(join(path, m.key)))
      renameAliases(m.value, join(path, m.key), fileName);
}

void applySet(Node &root, const std::string &set) {
  const size_t equals = set.find('=');
  const std::string path = set.substr(0, equals), what = "--set " + path.substr(0, longestPath);
  for (unsigned char byte : path)
    if (byte < 0x20 || byte >= 0x7f)
      throw ConfigError("--set " + printable(path) + ": the path holds a character that no key has");
  if (equals == std::string::npos || equals == 0)
    throw ConfigError("--set " + set.substr(0, longestPath) + ": is not of the form KEY.PATH=VALUE", {}, {},
                      "--set zero_optimization.stage=0");
  if (path.size() > longestPath)
    throw ConfigError(what + "...: no key has a path this long");
  Node value = parseHjsonValue(std::string_view(set).substr(equals + 1), what);
  if (value.kind == Node::Kind::Null)
    return removeKey(root, path, what);
  Node *object = &root;
  std::string section;
  for (size_t begin = 0;;) {
    const size_t dot = path.find('.', begin);
    const std::string written = path.substr(begin, dot - begin), key(meaning(section, written));
    if (key.empty())
      throw ConfigError(what + ": the path has an empty part; write the keys joined by single dots");
    Node *next = member(*object, key);
    if (!next) {
      object->members.push_back({key, {}, key == written ? "" : written});
      next = &object->members.back().value;
    }
    if (dot == std::string::npos) {
      *next = std::move(value);
      return;
    }
    section = join(section, key);
    if (next->kind == Node::Kind::Null)
      next->kind = Node::Kind::Object;
    if (next->kind != Node::Kind::Object)
      refuseKeysBelow(*next, section, what);
    object = next;
    begin = dot + 1;
  }
}

} // namespace ds::config
