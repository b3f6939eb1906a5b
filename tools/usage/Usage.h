//===- Usage.h - what both tools say of wrong usage -----------------------===//
#pragma once

#include "core/NearestName.h"

#include <CLI/CLI.hpp>

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

} // namespace ds
