//===- NearestName.cpp - what a user who mistyped a name most likely meant ===//
#include "core/NearestName.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace ds {

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string_view nearestName(std::string_view name, std::span<const std::string_view> names) {
  constexpr size_t longestGuess = 200; // bytes; what is longer resembles nothing
  name = name.substr(0, longestGuess);
  const auto nearest = std::min_element(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return editDistance(name, a) < editDistance(name, b);
  });
  return nearest == names.end() ? std::string_view() : *nearest;
}

} // namespace ds
