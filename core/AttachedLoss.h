//===- AttachedLoss.h - a loss that the compiler puts behind a forward graph ===//
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ds {

/// The loss functions of transformers (loss_utils.py): a mean cross entropy, or a mean squared error.
enum class LossKind { CausalLm, MaskedLm, TokenClassification, Classification, Regression };

inline constexpr std::array<std::pair<std::string_view, LossKind>, 5> lossKinds = {
    {{"causal-lm", LossKind::CausalLm},
     {"masked-lm", LossKind::MaskedLm},
     {"token-classification", LossKind::TokenClassification},
     {"classification", LossKind::Classification},
     {"regression", LossKind::Regression}}};

constexpr std::string_view name(LossKind kind) { return lossKinds[size_t(kind)].first; }

constexpr std::optional<LossKind> lossKindFromName(std::string_view name) {
  for (const auto &[word, kind] : lossKinds)
    if (word == name)
      return kind;
  return std::nullopt;
}

/// What --attach-loss and "deepstatic": {"loss": ...} say.
struct AttachedLoss {
  LossKind kind = LossKind::CausalLm;
  double labelSmoothing = 0;  // at least 0, less than 1
  int64_t ignoreIndex = -100; // a label that does not count
  std::string logits = {};    // an output; empty: the one that must be meant
};

/// The graph input that an attached loss reads.
inline constexpr const char *attachedLabels = "labels";

} // namespace ds
