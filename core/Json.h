//===- Json.h - JSON that is written --------------------------------------===//
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace ds {

/// A JSON value that is put together and written:
///   Json plan = {{"format", 1}, {"ranks", {0, 3}}};
///   plan["name"] = "gpt2";
///   plan.dump() == R"({"format":1,"ranks":[0,3],"name":"gpt2"})"
/// Members keep their order. Cf. nlohmann::ordered_json, whose templates take 5 s in each file that writes a few lines
/// with them; a number or a string is kept as its text here, so that Json.cpp alone needs it.
class Json {
public:
  Json() = default; ///< null
  Json(std::nullptr_t) {}
  template <std::integral T> Json(T value) {
    if constexpr (std::same_as<T, bool>)
      text_ = value ? "true" : "false";
    else
      text_ = std::to_string(value);
  }
  Json(double value); ///< the shortest decimal that reads back equal; null where it is infinite or NaN
  Json(std::string_view value);
  Json(const std::string &value) : Json(std::string_view(value)) {}
  Json(const char *value) : Json(std::string_view(value)) {}
  template <typename T> Json(const std::vector<T> &items) : kind_(Kind::Array), items_(items.begin(), items.end()) {}
  /// An object where every item is a pair that begins with a string, else an array.
  Json(std::initializer_list<Json> items);

  static Json array() { return std::vector<Json>(); }
  static Json object();

  /// The member `key`, null where it is new. Makes an object of null.
  Json &operator[](std::string_view key);
  /// Makes an array of null.
  void push_back(Json item);
  /// Adds the members of another object.
  void append(const Json &object);

  /// One line; with `indent`, a line a value, each level so many spaces deeper. Bytes that are no UTF-8 become U+FFFD.
  std::string dump(int indent = -1) const;

private:
  enum class Kind { Scalar, Array, Object };

  bool isString() const { return kind_ == Kind::Scalar && text_[0] == '"'; }
  void write(std::string &out, int indent, int depth) const;

  Kind kind_ = Kind::Scalar;
  std::string text_ = "null";     // of a scalar, as it is written
  std::vector<Json> items_;       // of an array or object
  std::vector<std::string> keys_; // of an object's items, as they are written
};

} // namespace ds
