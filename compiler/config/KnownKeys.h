//===- KnownKeys.h - every key that a configuration may have --------------===//
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ds::config {

/// A key of DeepSpeed's configuration, or one below "deepstatic".
struct KnownKey {
  std::string_view path; // keys joined by '.'; `*` stands for any name
  std::string_view type; // "bool", "int", "float", "str", "list", "object", "tuple", "null", "any", or some with '|'
  std::string_view fallback; // what holds where the key is left out, JSON
  std::string_view values;   // the only values allowed, a JSON list; empty: any of the type
  std::string_view alias;    // the path of the key that this is another name of, or empty
  bool removed;              // DeepSpeed refuses it
};

/// All of them, sorted by path.
std::span<const KnownKey> knownKeys();

/// The key at `path`, or null.
const KnownKey *findKey(std::string_view path);

/// Whether keys lie below `path`.
bool isSection(std::string_view path);

/// The key that a user who wrote `path` most likely meant.
std::string nearestKey(std::string_view path);

} // namespace ds::config
