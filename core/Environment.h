//===- Environment.h - environment variables that take a few values -------===//
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace ds {

/// Reads which of `values` environment variable `name` has: its place among them; nothing where it is unset or empty.
/// Throws ds::Error for another value.
std::optional<size_t> readChoice(const char *name, std::span<const std::string_view> values);

/// Reads environment variable `name`, which is 0 or 1; `unset` where it is unset or empty. Throws ds::Error.
bool readSwitch(const char *name, bool unset);

} // namespace ds
