//===- WeightNames.h - names of parameters in files of weights ------------===//
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ds {

/// The entry of a safetensors file that is no tensor, so no tensor may have this name.
constexpr const char *safetensorsNotes = "__metadata__";

/// How names in a file of weights differ from a model's where they are not the same: one of the usual prefixes. A base
/// model's file lacks the "model." or "transformer." that the model with its head has; wrappers add "module.".
struct PrefixRule {
  std::string prefix;  ///< empty: no difference
  bool inFile = false; ///< the file's names have it; else the model's

  /// The model's name as the file has it.
  std::string fileName(const std::string &modelName) const;
  /// `names in FOLDER lack "model."`; `file`: what the user calls it.
  std::string sentence(const std::string &file) const;
};

/// The rule that finds most of the parameters that the file does not have under any of their own names; no difference
/// if none finds any. `parameters`: each one's names, several if it is tied.
PrefixRule findPrefixRule(const std::vector<std::vector<std::string>> &parameters,
                          const std::function<bool(const std::string &)> &fileHas);

/// What the file calls a parameter: the first of its names that it has as it is, else by the rule. Empty: it has none.
std::string nameInFile(const std::vector<std::string> &names, const PrefixRule &rule,
                       const std::function<bool(const std::string &)> &fileHas);

/// "a, b, c and 4 more"
std::string firstNames(const std::vector<std::string> &names);

} // namespace ds
