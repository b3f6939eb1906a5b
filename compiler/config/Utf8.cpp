//===- Utf8.cpp -----------------------------------------------------------===//
#include "compiler/config/Utf8.h"
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ds::config {

void appendUtf8(std::string &text, uint32_t code) {
  const auto continuation = [&](int shift) { text += char(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    text += char(code);
  } else if (code < 0x800) {
    text += char(0xc0 | (code >> 6));
    continuation(0);
  } else if (code < 0x10000) {
    text += char(0xe0 | (code >> 12));
    continuation(6);
    continuation(0);
  } else {
    text += char(0xf0 | (code >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

std::optional<size_t> firstInvalidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) { return i + k < text.size() ? uint8_t(text[i + k]) : uint8_t(0); };
    const uint8_t lead = byte(0);
    const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (length == 0)
      return i;
    // The second byte rules out overlong forms, surrogates and what lies above 0x10ffff.
    const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (size_t k = 1; k < length; ++k)
      if (byte(k) < (k == 1 ? low : 0x80) || byte(k) > (k == 1 ? high : 0xbf))
        return i;
    i += length;
  }
  return std::nullopt;
}

std::string shorten(std::string_view text, size_t limit) {
  if (text.size() <= limit)
    return std::string(text);
  while (limit > 0 && (uint8_t(text[limit]) & 0xc0) == 0x80) // within a character
    --limit;
  return std::string(text.substr(0, limit)) + "...";
}

} // namespace ds::config
