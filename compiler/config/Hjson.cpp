//===- Hjson.cpp - a recursive-descent reader of HJSON --------------------===//
#include "compiler/config/Hjson.h"

#include "compiler/config/Utf8.h"
#include "core/Error.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ds::config {
namespace {

bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool isPunctuator(char c) { return c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == ':'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimEnd(std::string_view text) {
  while (!text.empty() && isSpace(text.back()))
    text.remove_suffix(1);
  return text;
}

/// Whether `text` is meant as a number, though JSON has none like it: NaN, -Infinity, 01, +1, .5, 0x10.
bool looksLikeNumber(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-'))
    text.remove_prefix(1);
  return text == "NaN" || text == "nan" || text == "Infinity" || text == "inf" ||
         (!text.empty() && (isDigit(text[0]) || text[0] == '.') &&
          text.find_first_not_of("0123456789abcdefABCDEFxX.+-_") == std::string_view::npos);
}

/// Whether `text` is exactly a JSON number.
bool isNumber(std::string_view text) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t first = i;
    while (i < text.size() && isDigit(text[i]))
      ++i;
    return i - first;
  };
  if (i < text.size() && text[i] == '-')
    ++i;
  const size_t first = i, integral = digits();
  if (integral == 0 || (integral > 1 && text[first] == '0'))
    return false;
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (digits() == 0)
      return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-'))
      ++i;
    if (digits() == 0)
      return false;
  }
  return i == text.size();
}

/// A key in a message: on one line whatever it holds.
std::string quoted(std::string_view key) {
  Node node;
  node.kind = Node::Kind::String;
  node.text = shorten(key, 80);
  return toJson(node);
}

class Reader {
public:
  Reader(std::string_view text, std::string name, bool lines)
      : text_(text), name_(std::move(name)), lines_(lines), line_(lines ? 1 : 0) {}

  Node document() {
    if (text_.starts_with("\xef\xbb\xbf"))
      position_ = 3;
    skipBlank();
    Node root;
    if (peek() == '[')
      fail("the top level is a list; it must be an object of keys and values");
    if (peek() == '{')
      root = value(0);
    else
      members(root, std::nullopt, 0);
    skipBlank();
    if (!atEnd())
      fail("there is more text after the closing '}' of the configuration");
    return root;
  }

  Node single() {
    skipBlank();
    if (atEnd())
      fail("there is no value");
    Node node = value(0);
    skipBlank();
    if (!atEnd())
      fail("there is more text after the value");
    return node;
  }

private:
  std::string_view text_;
  std::string name_;
  bool lines_;
  int line_;
  size_t position_ = 0;
  std::string key_; // the last one

  bool atEnd() const { return position_ >= text_.size(); }
  char peek(size_t ahead = 0) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }
  bool follows(std::string_view word) const { return text_.substr(position_).starts_with(word); }

  void advance() {
    if (text_[position_++] == '\n' && lines_)
      ++line_;
  }

  [[noreturn]] void fail(const std::string &sentence) const { fail(line_, sentence); }
  [[noreturn]] void fail(int line, const std::string &sentence) const {
    throw Error(name_ + (lines_ ? ":" + std::to_string(line) : "") + ": " + sentence);
  }

  /// Skips white space and comments.
  void skipBlank() {
    while (!atEnd()) {
      if (isSpace(peek())) {
        advance();
      } else if (peek() == '#' || follows("//")) {
        while (!atEnd() && peek() != '\n')
          advance();
      } else if (follows("/*")) {
        skipBlockComment();
      } else {
        return;
      }
    }
  }

  void skipBlockComment() {
    const int opened = line_;
    const size_t end = text_.find("*/", position_ + 2);
    if (end == std::string_view::npos)
      fail(opened, "the comment that begins here is never closed with */");
    while (position_ < end + 2)
      advance();
  }

  Node value(int depth) {
    if (depth >= hjsonDepthLimit)
      fail("values are nested deeper than " + std::to_string(hjsonDepthLimit) + " levels");
    Node node;
    node.line = line_;
    const char c = peek();
    if (c == '{') {
      advance();
      members(node, node.line, depth);
    } else if (c == '[') {
      advance();
      items(node, depth);
    } else if (follows("'''")) {
      node.kind = Node::Kind::String;
      node.text = multilineString();
    } else if (c == '"' || c == '\'') {
      node.kind = Node::Kind::String;
      node.text = quotedString();
    } else if (atEnd() || isPunctuator(c)) {
      fail(atEnd() ? "the text ends where a value must stand"
                   : std::string("'") + c + "' stands where a value must stand");
    } else {
      unquoted(node);
    }
    return node;
  }

  /// Members up to the '}' of an object opened on line `opened`, or up to the end of the text.
  void members(Node &object, std::optional<int> opened, int depth) {
    object.kind = Node::Kind::Object;
    std::map<std::string, int, std::less<>> lineOfKey;
    for (skipBlank(); !(opened && peek() == '}'); skipBlank()) {
      if (atEnd()) {
        if (!opened)
          return;
        fail(*opened, "the object that begins here is never closed with '}'; an unquoted string takes the rest of its "
                      "line, brackets and commas included");
      }
      const int line = line_;
      std::string name = key();
      const auto [before, fresh] = lineOfKey.emplace(name, line);
      if (!fresh)
        fail(line, "key " + quoted(name) + " stands twice in one object, first on line " +
                       std::to_string(before->second) + "; remove one of them");
      skipBlank();
      key_ = name;
      object.members.push_back({std::move(name), value(depth + 1), {}});
      skipBlank();
      if (peek() == ',')
        advance();
    }
    advance();
  }

  void items(Node &array, int depth) {
    const int opened = line_;
    array.kind = Node::Kind::Array;
    for (skipBlank(); peek() != ']'; skipBlank()) {
      if (atEnd())
        fail(opened, "the list that begins here is never closed with ']'");
      array.items.push_back(value(depth + 1));
      skipBlank();
      if (peek() == ',')
        advance();
    }
    advance();
  }

  /// A key, quoted or bare, and the ':' behind it.
  std::string key() {
    std::string name;
    if (peek() == '"' || peek() == '\'') {
      name = quotedString();
    } else {
      while (!atEnd() && !isSpace(peek()) && !isPunctuator(peek())) {
        name += peek();
        advance();
      }
      if (name.empty())
        fail(std::string("'") + peek() + "' stands where a key must stand");
    }
    skipBlank();
    if (peek() != ':')
      fail("key " + quoted(name) + " is not followed by ':'");
    advance();
    return name;
  }

  /// "..." or '...' with JSON's escapes.
  std::string quotedString() {
    const char quote = peek();
    const int opened = line_;
    std::string result;
    for (advance(); peek() != quote || atEnd();) {
      if (atEnd() || peek() == '\n' || peek() == '\r')
        fail(opened, "the string that begins here is never closed on its line");
      if (peek() == '\\') {
        advance();
        escape(result);
      } else if (static_cast<unsigned char>(peek()) < 0x20 && peek() != '\t') {
        fail("a control character stands in a string; write it as \\u00..");
      } else {
        result += peek();
        advance();
      }
    }
    advance();
    return result;
  }

  void escape(std::string &result) {
    static constexpr std::string_view letters = "\"'\\/bfnrt", meanings = "\"'\\/\b\f\n\r\t";
    const char c = peek();
    const size_t which = letters.find(c);
    if (atEnd() || (which == std::string_view::npos && c != 'u'))
      fail("a string holds an escape that JSON does not know; write a backslash as \\\\");
    advance();
    if (c != 'u') {
      result += meanings[which];
      return;
    }
    uint32_t code = hexDigits();
    if (code >= 0xd800 && code < 0xdc00 && follows("\\u")) { // the first half of a surrogate pair
      position_ += 2;
      const uint32_t low = hexDigits();
      code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xd800;
    }
    if (code >= 0xd800 && code < 0xe000)
      fail("a string holds half of a surrogate pair");
    appendUtf8(result, code);
  }

  uint32_t hexDigits() {
    uint32_t code = 0;
    const std::string_view digits = text_.substr(position_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc() || digits.size() != 4 || end != digits.data() + 4)
      fail("\\u is not followed by four hexadecimal digits");
    position_ += 4;
    return code;
  }

  /// '''...''': its lines as they stand, but for indentation up to the column of the opening quotes, a blank first line
  /// and the last line break.
  std::string multilineString() {
    const size_t indent = position_ - (text_.rfind('\n', position_) + 1); // npos + 1 is 0
    const size_t begin = position_ + 3, end = text_.find("'''", begin);
    if (end == std::string_view::npos)
      fail("the text that begins here is never closed with '''");
    while (position_ < end + 3)
      advance();
    std::string result;
    size_t skip = std::string_view::npos; // white space to leave out of this line
    for (size_t at = begin; at <= end;) {
      const size_t lineEnd = std::min(end, text_.find('\n', at));
      std::string_view line = text_.substr(at, lineEnd - at);
      for (size_t n = 0; n < skip && !line.empty() && isSpace(line.front()); ++n)
        line.remove_prefix(1);
      if (line.ends_with('\r'))
        line.remove_suffix(1);
      const bool blankFirst = at == begin && line.empty();
      result += line;
      if (lineEnd < end && !blankFirst)
        result += '\n';
      at = lineEnd + 1;
      skip = indent;
    }
    if (result.ends_with('\n'))
      result.pop_back();
    return result;
  }

  /// true, false, null or a number where one of them fills the room up to a ',', a closing bracket, a comment or the
  /// end of the line; else everything up to the end of the line.
  void unquoted(Node &node) {
    for (size_t end = position_;; ++end) {
      const char c = end < text_.size() ? text_[end] : '\n';
      const bool lineEnds = c == '\n' || c == '\r';
      const bool comment =
          c == '#' || (c == '/' && end + 1 < text_.size() && (text_[end + 1] == '/' || text_[end + 1] == '*'));
      if (!lineEnds && !comment && c != ',' && c != '}' && c != ']')
        continue;
      const std::string_view word = trimEnd(text_.substr(position_, end - position_));
      const bool known = literal(node, word);
      if (!known && !lineEnds && !comment && looksLikeNumber(word))
        fail("key " + quoted(key_) + " is " + shorten(word, 80) +
             ", which is no number of JSON; write a decimal number such as 10 or 1e-5, or a string in quotes");
      if (!known && !lineEnds)
        refusePython(word);
      if (!known && !lineEnds)
        continue;
      if (!known) {
        node.kind = Node::Kind::String;
        node.text = word;
      }
      position_ = end; // a value has no line break
      return;
    }
  }

  /// Refuses what Python writes for a value.
  void refusePython(std::string_view word) const {
    for (const auto &[theirs, ours] : {std::pair("True", "true"), {"False", "false"}, {"None", "null"}})
      if (word == theirs)
        fail("'" + std::string(word) + "' is Python's, and stands for no value here; write " + ours);
  }

  bool literal(Node &node, std::string_view word) const {
    if (word == "null") {
      node.kind = Node::Kind::Null;
      return true;
    }
    if (word == "true" || word == "false") {
      node.kind = Node::Kind::Bool;
      node.boolean = word == "true";
      return true;
    }
    if (!isNumber(word))
      return false;
    const char *first = word.data(), *last = first + word.size();
    if (std::from_chars(first, last, node.number).ec != std::errc())
      fail("the number " + shorten(word, 80) + " does not fit into 64 bits");
    const auto [end, error] = std::from_chars(first, last, node.integer);
    node.kind = error == std::errc() && end == last ? Node::Kind::Int : Node::Kind::Float;
    return true;
  }
};

void checkText(std::string_view text, const std::string &name) {
  if (text.size() > hjsonSizeLimit)
    throw Error(name + ": has " + std::to_string(text.size()) + " bytes; a configuration has at most " +
                std::to_string(hjsonSizeLimit));
  if (const auto wrong = firstInvalidUtf8(text))
    throw Error(name + ": byte " + std::to_string(*wrong) + " is not UTF-8 text");
}

} // namespace

Node parseHjson(std::string_view text, const std::string &fileName) {
  checkText(text, fileName);
  return Reader(text, fileName, /*lines=*/true).document();
}

Node parseHjsonValue(std::string_view text, const std::string &what) {
  checkText(text, what);
  return Reader(text, what, /*lines=*/false).single();
}

} // namespace ds::config
