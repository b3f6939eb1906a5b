//===- NearestName.h - what a user who mistyped a name most likely meant --===//
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace ds {

/// Levenshtein: insertions, deletions and replacements that make one of the other.
size_t editDistance(std::string_view a, std::string_view b);

/// Of `names`, the one closest to `name` by edit distance; empty where there are none.
std::string_view nearestName(std::string_view name, std::span<const std::string_view> names);

} // namespace ds
