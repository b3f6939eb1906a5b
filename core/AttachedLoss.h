//===- AttachedLoss.h - a loss that the compiler puts behind a forward graph ===//
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds {

/// A mean cross entropy of classes, as in transformers (loss_utils.py), or of pixels; a mean binary cross entropy, or a
/// mean squared error.
enum class LossKind { CausalLm, MaskedLm, TokenClassification, Classification, Segmentation, MultiLabel, Regression };

inline constexpr std::array<std::pair<std::string_view, LossKind>, 7> lossKinds = {
    {{"causal-lm", LossKind::CausalLm},
     {"masked-lm", LossKind::MaskedLm},
     {"token-classification", LossKind::TokenClassification},
     {"classification", LossKind::Classification},
     {"segmentation", LossKind::Segmentation},
     {"multi-label", LossKind::MultiLabel},
     {"regression", LossKind::Regression}}};

constexpr std::string_view name(LossKind kind) { return lossKinds[size_t(kind)].first; }

constexpr std::optional<LossKind> lossKindFromName(std::string_view name) {
  for (const auto &[word, kind] : lossKinds)
    if (word == name)
      return kind;
  return std::nullopt;
}

/// Whether a label is the number of a class; else it is a float.
constexpr bool choosesClass(LossKind kind) { return kind != LossKind::MultiLabel && kind != LossKind::Regression; }

/// What --attach-loss and "deepstatic": {"loss": ...} say.
struct AttachedLoss {
  LossKind kind = LossKind::CausalLm;
  double labelSmoothing = 0;             // at least 0, less than 1
  int64_t ignoreIndex = -100;            // a label that does not count
  std::string logits = {};               // an output; empty: the one that must be meant
  std::vector<double> classWeights = {}; // of a label's class; empty: 1
  std::vector<double> posWeight = {};    // of labels of 1, for each class or all; empty: 1
  std::string file = {};                 // an ONNX graph that is the loss, in place of a kind; empty: none
  std::string sha256 = {};               // of the file, in hexadecimal; empty: of any
};

/// The graph input that an attached loss reads.
inline constexpr const char *attachedLabels = "labels";

} // namespace ds
