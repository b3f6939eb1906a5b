//===- Utf8.h - text that may come from anywhere --------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ds::config {

/// Appends the character `code`, at most 0x10ffff and no surrogate.
void appendUtf8(std::string &text, uint32_t code);

/// Index of the first byte that begins no well-formed UTF-8 character (Unicode 15, table 3-7), or nothing.
std::optional<size_t> firstInvalidUtf8(std::string_view text);

/// At most `limit` bytes of a text and "..." for the rest; cuts no character in two.
std::string shorten(std::string_view text, size_t limit);

} // namespace ds::config
