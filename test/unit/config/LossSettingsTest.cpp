//===- LossSettingsTest.cpp - deepstatic.loss -----------------------------===//
#include "compiler/config/Config.h"

#include <gtest/gtest.h>
#include <string>

namespace ds::config {
namespace {

Config resolve(const std::string &loss) {
  return resolveConfig(
      R"({"train_batch_size": 1, "optimizer": {"type": "AdamW"}, "deepstatic": {"loss": )" + loss + "}}", {});
}

std::string refusal(const std::string &loss) {
  try {
    resolve(loss);
  } catch (const ConfigError &error) {
    EXPECT_TRUE(error.details.empty());
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << loss;
  return {};
}

bool holds(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
  return text.find(part) != std::string::npos;
}

TEST(LossSettings, WordOrObject) {
  EXPECT_FALSE(resolve("null").loss);
  const Config word = resolve(R"("masked-lm")");
  EXPECT_EQ(word.loss->kind, LossKind::MaskedLm);
  EXPECT_EQ(word.loss->ignoreIndex, -100);
  const AttachedLoss object =
      *resolve(R"({"kind": "causal-lm", "label_smoothing": 0.1, "ignore_index": 0, "logits": "y"})").loss;
  EXPECT_EQ(object.kind, LossKind::CausalLm);
  EXPECT_EQ(object.labelSmoothing, 0.1);
  EXPECT_EQ(object.ignoreIndex, 0);
  EXPECT_EQ(object.logits, "y");
}

TEST(LossSettings, File) {
  const Config first = resolve(R"({"file": "losses/focal.onnx", "sha256": "ab"})");
  EXPECT_EQ(first.loss->file, "losses/focal.onnx");
  const Config second = resolveConfig(resolvedJson(first), {});
  EXPECT_EQ(second.loss->file, "losses/focal.onnx");
  EXPECT_EQ(second.loss->sha256, "ab");
}

/// ds-run and ds-opt verify read the configuration that a plan carries.
TEST(LossSettings, ReadsBackWhatItWrites) {
  const Config first =
      resolve(R"({"kind": "classification", "label_smoothing": 0.25, "logits": "y", "class_weights": [1, 0.1]})");
  const Config second = resolveConfig(resolvedJson(first), {});
  EXPECT_EQ(second.loss->kind, LossKind::Classification);
  EXPECT_EQ(second.loss->labelSmoothing, 0.25);
  EXPECT_EQ(second.loss->logits, "y");
  EXPECT_EQ(second.loss->classWeights, (std::vector<double>{1, 0.1}));
  const Config weighed = resolve(R"({"kind": "multi-label", "pos_weight": [2, 0.5]})");
  EXPECT_EQ(resolveConfig(resolvedJson(weighed), {}).loss->posWeight, (std::vector<double>{2, 0.5}));
}

TEST(LossSettings, Refuses) {
  holds(refusal(R"("causal")"), "its kinds are causal-lm, masked-lm, token-classification, classification, "
                                "segmentation, multi-label, regression; "
                                "the nearest is causal-lm");
  holds(refusal(R"({"label_smoothing": 0.1})"),
        R"(it has no kind; write {"kind": "causal-lm"}, or {"file": "loss.onnx"})");
  holds(refusal(R"({"file": "a.onnx", "kind": "causal-lm"})"),
        "a file is the whole loss, and no other key goes with it");
  holds(refusal(R"({"kind": 3})"), R"(kind is 3 and must be a text such as "causal-lm")");
  holds(refusal(R"({"kind": "causal-lm", "label_smoothing": 1})"),
        "label_smoothing is 1 and must be at least 0 and less than 1");
  holds(refusal(R"({"kind": "causal-lm", "ignore_index": 0.5})"), "ignore_index is 0.5 and must be a whole number");
  holds(refusal(R"({"kind": "causal-lm", "logits": ""})"), R"(logits is "" and must be the name of an output)");
  holds(refusal(R"({"kind": "causal-lm", "weight": 2})"),
        "it has weight; kind, file, label_smoothing, ignore_index, class_weights, pos_weight and logits are available");
  for (const char *weights : {"[]", "[0, 0]", "[1, -1]", "[\"a\"]", "2"})
    holds(refusal(R"({"kind": "classification", "class_weights": )" + std::string(weights) + "}"),
          "and must be a list of finite numbers, one for each class, at least 0, not all 0");
  holds(refusal(R"({"kind": "multi-label", "class_weights": [1]})"),
        "class_weights belongs to labels that are classes; those of multi-label are floats");
  holds(refusal(R"({"kind": "regression", "pos_weight": [1]})"),
        "pos_weight belongs to multi-label; regression has none");
  holds(refusal(R"({"kind": "regression", "label_smoothing": 0.1})"),
        "label_smoothing belongs to labels that are classes; those of regression are floats");
}

} // namespace
} // namespace ds::config
