//===- KeyRules.h - what we do with every key -----------------------------===//
#pragma once

#include "compiler/config/KnownKeys.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ds::config {

enum class Treatment {
  Honoured,    ///< the resolver reads it
  Subsumed,    ///< any value of its type; `note` says why it needs no obeying
  DefaultOnly, ///< the value that changes nothing; any other asks for what is not built
};

/// Holds for the key at `path` and for those below it, where no longer path says otherwise.
struct KeyRule {
  std::string_view path;
  Treatment treatment;
  std::string_view note; // of an accepted value
  std::string_view also; // DefaultOnly: one more value that changes nothing, JSON
};
KeyRule ruleFor(std::string_view path);

/// While the key `section`.`key` is `off`, no other key below `section` has an effect.
struct OffSwitch {
  std::string_view section, key, off; // off: JSON
};
std::span<const OffSwitch> offSwitches();

/// Whether the switch of a section rules over the key at `path`.
bool governs(const OffSwitch &offSwitch, std::string_view path);

/// A parameter of one optimizer or scheduler; its path is relative to `optimizer.params` or `scheduler.params`.
struct Parameter {
  KnownKey key;
  Treatment treatment;
  std::string_view note;
};
/// The parameters of a type as we know it ("AdamW", "Adam", "SGD", "Adagrad", "Lion", "Lamb"; "WarmupLR", ...); none
/// for other types.
std::span<const Parameter> optimizerParameters(std::string_view type);
std::span<const Parameter> schedulerParameters(std::string_view type);

/// Our spelling of a type that is available, whatever the case (DeepSpeed ignores the case of optimizers only).
std::optional<std::string_view> availableOptimizer(std::string_view written);
std::optional<std::string_view> availableScheduler(std::string_view written);
std::span<const std::string_view> availableOptimizers();
std::span<const std::string_view> availableSchedulers();

/// docs/config.md: every key, its default and what we do with it, as Markdown.
std::string keyTable();

/// Some lines about one key: its type, its default, what ds-opt does. "" for one that there is not.
std::string explainKey(std::string_view path);

} // namespace ds::config
