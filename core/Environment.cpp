#include "core/Environment.h"

#include "core/Error.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

namespace ds {

std::optional<size_t> readChoice(const char *name, std::span<const std::string_view> values) {
  const char *text = std::getenv(name);
  if (text == nullptr || *text == '\0')
    return std::nullopt;
  const auto found = std::ranges::find(values, std::string_view(text));
  if (found != values.end())
    return size_t(found - values.begin());
  std::string names;
  for (const std::string_view &value : values)
    names += std::string(names.empty() ? "" : ", ") += value;
  throw Error("the environment variable " + std::string(name) + " is '" + text + "', which is none of " + names);
}

bool readSwitch(const char *name, bool unset) {
  static constexpr std::array<std::string_view, 2> values{"0", "1"};
  const std::optional<size_t> value = readChoice(name, values);
  return value ? *value == 1 : unset;
}

} // namespace ds
