//===- AutoValues.h - what "auto" stands for ------------------------------===//
#pragma once

#include "compiler/config/Hjson.h"
#include "compiler/config/KnownKeys.h"

#include <span>
#include <string_view>

namespace ds::config {

/// A key whose "auto" is not DeepSpeed's default.
struct AutoRule {
  std::string_view path;
  std::string_view meaning; // for docs/config.md; h is the hidden size
};
std::span<const AutoRule> autoRules();

/// Whether a key's value is "auto" and not what the key itself calls so: some have an "auto" of their own, or take any
/// text.
bool isAuto(const Node &value, const KnownKey &key);

/// Why an "auto" that was not replaced is refused.
struct AutoRefusal {
  std::string_view reason;
  std::string_view instead; // a value that would do, JSON; empty: none comes to mind
};
AutoRefusal refusalOfAuto(std::string_view path);

} // namespace ds::config
