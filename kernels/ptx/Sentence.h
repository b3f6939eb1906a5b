//===- Sentence.h - sentences with values in them --------------------------===//
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace ds::ptx {

/// An address, printed as 0x1f.
struct Address {
  uint64_t value;
};

inline std::string printed(std::string_view text) { return std::string(text); }
inline std::string printed(Address address) {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), address.value, 16).ptr;
  return "0x" + std::string(digits.begin(), end);
}
template <typename T>
  requires std::is_integral_v<T>
std::string printed(T value) {
  return std::to_string(value);
}

/// `pattern` with a value in place of each {}.
template <typename... Values> std::string sentence(std::string_view pattern, const Values &...values) {
  std::string result;
  const auto add = [&](const std::string &value) {
    const size_t place = pattern.find("{}");
    result += std::string(pattern.substr(0, place)) + value;
    pattern.remove_prefix(place + 2);
  };
  (add(printed(values)), ...);
  return result + std::string(pattern);
}

} // namespace ds::ptx
