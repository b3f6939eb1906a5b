//===- Usage.h - what both tools say of wrong usage -----------------------===//
#pragma once

#include "core/NearestName.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace ds {

/// What CLI11 says, and of a flag that the command lacks the nearest that it has.
inline std::string usageSentence(const CLI::App &app, const CLI::ParseError &error) {
  const std::vector<std::string> rest = app.remaining(/*recurse=*/true);
  const auto unknown =
      std::ranges::find_if(rest, [](const std::string &word) { return word.size() > 1 && word[0] == '-'; });
  if (dynamic_cast<const CLI::ExtrasError *>(&error) == nullptr || unknown == rest.end())
    return error.what();
  const CLI::App *command = &app;
  while (!command->get_subcommands().empty())
    command = command->get_subcommands().front();
  std::vector<std::string> flags;
  for (const CLI::Option *option : command->get_options())
    for (const std::string &name : option->get_lnames())
      flags.push_back("--" + name);
  const std::vector<std::string_view> names(flags.begin(), flags.end());
  const std::string flag = unknown->substr(0, unknown->find('='));
  return "there is no flag " + flag + "; the nearest is " + std::string(nearestName(flag, names));
}

/// Why a text is no whole number of type T, as people write them: "010", "0x8" and "1e3" are none, and nothing is cut
/// off; else empty.
template <typename T> std::string wholeNumberProblem(const std::string &text) {
  T value = 0;
  const char *end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  const bool padded = text.size() > 1 && (text[0] == '0' || text.starts_with("-0"));
  if (problem == std::errc() && rest == end && !padded)
    return "";
  return "'" + text + "' is no whole number from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
         std::to_string(std::numeric_limits<T>::max()) + ", in decimal digits";
}

/// A number that counts something: at least 1, or more than 0 where it is no whole one.
inline CLI::Validator positive() {
  return CLI::Validator(
      [](std::string &text) {
        char *end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        return end != text.c_str() && *end == '\0' && std::isfinite(value) && value > 0
                   ? std::string()
                   : "'" + text + "' is no number above 0";
      },
      "POSITIVE");
}

/// What holds of each value of each flag and argument of a command and its subcommands, once all are there: it is not
/// empty, as that of a shell's variable that is not set, and a number is read as it is written.
inline void refuseOddValues(CLI::App &app) {
  for (CLI::Option *option : app.get_options()) {
    if (option->get_items_expected_max() == 0)
      continue; // a flag alone
    const std::string type = option->get_type_name();
    option->check(CLI::Validator(
        [type](std::string &text) {
          if (text.empty())
            return std::string("an empty value was given; leave it out, or give one");
          if (type.starts_with("UINT"))
            return wholeNumberProblem<uint64_t>(text);
          if (type.starts_with("INT"))
            return wholeNumberProblem<int64_t>(text);
          if (type.starts_with("FLOAT") && !std::isfinite(std::strtod(text.c_str(), nullptr)))
            return "'" + text + "' is no finite number";
          return std::string();
        },
        ""));
  }
  for (CLI::App *command : app.get_subcommands([](CLI::App *) { return true; }))
    refuseOddValues(*command);
}

} // namespace ds
