//===- WeightNames.cpp - names of parameters in files of weights ----------===//
#include "core/WeightNames.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ds {
namespace {

/// Of base models in transformers, of DistributedDataParallel, torch.compile and PEFT.
constexpr const char *prefixes[] = {"model.",    "transformer.", "bert.",      "vit.",
                                    "gpt_neox.", "module.",      "_orig_mod.", "base_model.model."};

} // namespace

std::string PrefixRule::fileName(const std::string &modelName) const {
  if (inFile)
    return prefix + modelName;
  return modelName.starts_with(prefix) ? modelName.substr(prefix.size()) : modelName;
}

std::string PrefixRule::sentence(const std::string &file) const {
  return "names in " + file + (inFile ? " begin with \"" : " lack the model's \"") + prefix + "\"" +
         (inFile ? ", the model's do not" : "");
}

PrefixRule findPrefixRule(const std::vector<std::vector<std::string>> &parameters,
                          const std::function<bool(const std::string &)> &fileHas) {
  PrefixRule best;
  std::ptrdiff_t most = 0;
  for (const char *prefix : prefixes)
    for (const bool inFile : {false, true}) {
      const PrefixRule rule{prefix, inFile};
      const auto found = std::ranges::count_if(parameters, [&](const std::vector<std::string> &names) {
        return std::ranges::none_of(names, fileHas) && !nameInFile(names, rule, fileHas).empty();
      });
      if (found > most) {
        most = found;
        best = rule;
      }
    }
  return best;
}

std::string nameInFile(const std::vector<std::string> &names, const PrefixRule &rule,
                       const std::function<bool(const std::string &)> &fileHas) {
  for (const std::string &name : names)
    if (fileHas(name))
      return name;
  for (const std::string &name : names)
    if (fileHas(rule.fileName(name)))
      return rule.fileName(name);
  return "";
}

std::string firstNames(const std::vector<std::string> &names) {
  constexpr size_t shown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(shown, names.size()); ++i)
    text += (i > 0 ? ", " : "") + names[i];
  return text + (names.size() > shown ? " and " + std::to_string(names.size() - shown) + " more" : "");
}

} // namespace ds
