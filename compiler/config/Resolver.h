//===- Resolver.h - a configuration while it is being answered ------------===//
#pragma once

#include "compiler/config/Config.h"
#include "compiler/config/Hjson.h"
#include "compiler/config/KnownKeys.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::config {

/// The values that the user wrote, by path, and what became of them. A refusal is noted and work goes on, so that the
/// user sees all of them at once.
class Resolver {
public:
  /// Reads the file and lays the flags over it. Throws ds::Error where either cannot be read.
  Resolver(std::string_view hjsonText, const ConfigOverrides &overrides);

  /// Gives every key that was written an answer. To be called once, first.
  void answerKeys();

  /// The value at a path, or nothing where the user wrote none, or null, or one of another type (which answerKeys has
  /// refused).
  const Node *find(std::string_view path) const;
  std::optional<double> number(std::string_view path) const;
  std::optional<int64_t> integer(std::string_view path) const;
  std::optional<bool> boolean(std::string_view path) const;
  std::optional<std::string_view> string(std::string_view path) const;

  /// The default of a key, from the tables of keys and parameters: the only place where defaults stand. A parameter's
  /// is that of the optimizer or schedule that was written.
  Node defaultOf(std::string_view path) const;
  /// What the user wrote, or else the default; 0 where that is null.
  double numberOrDefault(std::string_view path) const;
  int64_t integerOrDefault(std::string_view path) const;
  bool booleanOrDefault(std::string_view path) const;
  std::string stringOrDefault(std::string_view path) const;

  /// Notes "where: PATH is VALUE; reason" and marks the answer of the path, if it was written, as rejected. `remedy`: a
  /// flag that would help.
  void refuse(std::string_view path, const std::string &reason, const std::string &remedy = {});
  /// Notes a reason that is about no single key.
  void refuseWhole(const std::string &sentence, const std::string &remedy = {});

  /// Marks the answer of the path, if it was written and is honoured so far, as subsumed.
  void subsume(std::string_view path, const std::string &reason);

  /// Says what became of an "auto" at the path, where there is one.
  void nameAuto(std::string_view path, int64_t value);

  /// Whether there is one.
  bool wasAuto(std::string_view path) const;

  /// Throws what was refused, or writes all answers.
  void finish(Config &config);

private:
  void answerMembers(const Node &object, const std::string &path, const std::string &written);
  void answer(const Node &value, const std::string &path, const std::string &written);
  void answerKnown(const Node &value, const KnownKey &key, const std::string &path, const std::string &written);
  void answerParameter(const Node &value, const std::string &path, const std::string &written);
  void answerUnknown(const Node &value, const std::string &path, const std::string &written);
  std::optional<AutoValue> valueOfAuto(std::string_view path, const ConfigOverrides &overrides) const;
  void replaceAutos(Node &object, const std::string &section, const ConfigOverrides &overrides);
  bool answerBySwitch(const Node &value, const std::string &path, const std::string &written);
  void suggest(const std::string &flag);
  bool wellTyped(const Node &value, const KnownKey &key, const std::string &written);
  void accept(const Node &value, const std::string &path, const std::string &written, std::string_view status,
              std::string_view note);
  void reject(const Node &value, const std::string &path, const std::string &written, const std::string &reason);
  bool isDefault(const Node &value, std::string_view fallback, std::string_view also) const;
  std::string where(const Node &value, const std::string &written) const;

  std::string fileName_;
  Node root_;
  int unknownKeys_ = 0;
  std::vector<KeyAnswer> answers_;
  std::vector<std::string> answeredPaths_; // of the answers, under the names that aliases stand for
  std::vector<AutoValue> autos_;
  std::vector<std::string> problems_;
  std::vector<std::string> remedies_; // flags, together the line to try
};

/// The parts of a resolution, one file each.
/// These two set the data-parallel width.
void resolvePipeline(Resolver &resolver, const ConfigOverrides &overrides, Config &config);
void resolveTensor(Resolver &resolver, Config &config);     // after the pipeline
void resolveBatchSizes(Resolver &resolver, Config &config); // after both
void checkMicrobatches(Resolver &resolver, Config &config); // of the pipeline; after the batch sizes
void resolveLoss(Resolver &resolver, Config &config);
void resolveOptimizer(Resolver &resolver, Config &config);
void resolveScheduler(Resolver &resolver, Config &config);
void resolveParameterGroups(Resolver &resolver, Config &config); // after the optimizer
void resolveZero(Resolver &resolver, Config &config);
void resolveRecompute(Resolver &resolver, Config &config);
void resolveOffload(Resolver &resolver, Config &config); // after both

/// Lays `--set key.path=value` over the file. Throws ds::Error.
void applySet(Node &root, const std::string &set);
/// Renames keys that are other names of a key. Throws ds::Error where both stand with different values.
void renameAliases(Node &object, const std::string &path, const std::string &fileName);

/// Finds the divisors of `whole` next to a `part` of it that is none: below, above.
std::pair<int64_t, int64_t> divisorsBeside(int64_t whole, int64_t part);

/// A key as part of a printed path: in quotes where it holds more than letters, digits, '_' and '-'.
std::string printable(std::string_view key);
/// At most some 80 bytes of a value's JSON.
std::string shortJson(const Node &value);

} // namespace ds::config
