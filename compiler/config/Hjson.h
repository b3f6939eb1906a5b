//===- Hjson.h - a reader of HJSON, the form of DeepSpeed's configurations ===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ds {
class Json;
}

namespace ds::config {

struct Member;

/// A value and the line it begins on.
struct Node {
  enum class Kind { Null, Bool, Int, Float, String, Array, Object };
  Kind kind = Kind::Null;
  bool boolean = false;
  int64_t integer = 0; // Int
  double number = 0;   // Int and Float
  std::string text;    // String
  std::vector<Node> items;
  std::vector<Member> members; // in the order of the file; no key twice
  int line = 0;                // 0: from the command line
};

struct Member {
  std::string key;
  Node value;
  std::string written; // the user's spelling where `key` is the name that it stands for; else empty
};

/// Largest text and deepest nesting that are read.
inline constexpr size_t hjsonSizeLimit = size_t(1) << 20; // bytes
inline constexpr int hjsonDepthLimit = 64;

/// Reads a document whose top level is an object, with or without its braces: JSON plus comments (# // /* */), trailing
/// and missing commas, bare keys, '...' strings, '''...''' texts and unquoted strings, which run to the end of their
/// line (https://hjson.github.io/syntax.html, as hjson-py reads it). Throws ds::Error "fileName:line: ...".
Node parseHjson(std::string_view text, const std::string &fileName);

/// Reads one value, e.g. what follows the '=' of `--set`; every line is 0. Throws ds::Error "what: ...".
Node parseHjsonValue(std::string_view text, const std::string &what);

/// The value as one line of JSON.
std::string toJson(const Node &node);
/// The value as part of JSON that is written.
Json asJson(const Node &node);

/// Equal values; 1 equals 1.0.
bool sameValue(const Node &a, const Node &b);

/// The member `key` of an object, or null.
Node *member(Node &object, std::string_view key);
const Node *member(const Node &object, std::string_view key);

/// The value at a path of keys joined by '.', or null.
const Node *at(const Node &object, std::string_view path);

} // namespace ds::config
