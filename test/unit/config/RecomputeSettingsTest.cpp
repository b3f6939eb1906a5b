//===- RecomputeSettingsTest.cpp - deepstatic.recompute, checkpoints ------===//
#include "compiler/config/Config.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

namespace ds::config {
namespace {

using Mode = Recompute::Mode;

std::string file(const std::string &members) {
  return R"({"train_batch_size": 1, "optimizer": {"type": "AdamW"}, )" + members + "}";
}

Config resolve(const std::string &members) { return resolveConfig(file(members), {}); }

std::string own(const std::string &value) { return R"("deepstatic": {"recompute": )" + value + "}"; }

/// What a single refusal says of the value.
std::string refusal(const std::string &members) {
  try {
    resolve(members);
  } catch (const ConfigError &error) {
    EXPECT_EQ(error.details, std::vector<std::string>());
    const std::string sentence = error.what();
    return sentence.substr(std::min(sentence.find("; ") + 2, sentence.size()));
  }
  ADD_FAILURE() << "accepted: " << members;
  return {};
}

KeyAnswer answerOf(const Config &config, std::string_view path) {
  const auto found = std::find_if(config.answers.begin(), config.answers.end(),
                                  [&](const KeyAnswer &answer) { return answer.path == path; });
  return found == config.answers.end() ? KeyAnswer{} : *found;
}

TEST(RecomputeSettings, Words) {
  EXPECT_EQ(resolve(R"("steps_per_print": 1)").recompute.mode, Mode::Auto);
  EXPECT_EQ(resolve(own(R"("auto")")).recompute.mode, Mode::Auto);
  EXPECT_EQ(resolve(own(R"("Full")")).recompute.mode, Mode::Full);
  const Recompute none = resolve(own(R"("none")")).recompute;
  EXPECT_EQ(none.mode, Mode::Level);
  EXPECT_EQ(none.level, 0);
  const Config level = resolve(own("3"));
  EXPECT_EQ(level.recompute.mode, Mode::Level);
  EXPECT_EQ(level.recompute.level, 3);
  EXPECT_EQ(answerOf(level, "deepstatic.recompute").status, "honoured");
}

TEST(RecomputeSettings, RulesKeepTheirOrder) {
  const Recompute recompute = resolve(own(R"({"z.*": "save", "a": "Recompute"})")).recompute;
  EXPECT_EQ(recompute.mode, Mode::Rules);
  ASSERT_EQ(recompute.rules.size(), 2U);
  EXPECT_EQ(recompute.rules[0].modules, "z.*");
  EXPECT_FALSE(recompute.rules[0].again);
  EXPECT_EQ(recompute.rules[1].modules, "a");
  EXPECT_TRUE(recompute.rules[1].again);
}

TEST(RecomputeSettings, CheckpointsBelongToFull) {
  const std::string three = R"("activation_checkpointing": {"number_checkpoints": 3})";
  const Config full = resolve(own(R"("full")") + ", " + three);
  EXPECT_EQ(full.recompute.checkpoints, 3);
  EXPECT_EQ(answerOf(full, "activation_checkpointing.number_checkpoints").status, "honoured");
  const Config automatic = resolve(three);
  EXPECT_EQ(automatic.recompute.checkpoints, 0);
  EXPECT_EQ(answerOf(automatic, "activation_checkpointing.number_checkpoints"),
            (KeyAnswer{"activation_checkpointing.number_checkpoints", "3", "subsumed",
                       "has no effect unless deepstatic.recompute is \"full\""}));
}

TEST(RecomputeSettings, TheRestOfTheSectionIsAnswered) {
  const Config config = resolve(R"("activation_checkpointing": {"partition_activations": true, "profile": true,
      "contiguous_memory_optimization": true, "synchronize_checkpoint_boundary": true, "cpu_checkpointing": false},
      "pipeline": {"activation_checkpoint_interval": 0})");
  for (const char *key :
       {"partition_activations", "profile", "contiguous_memory_optimization", "synchronize_checkpoint_boundary"})
    EXPECT_EQ(answerOf(config, std::string("activation_checkpointing.") + key).status, "subsumed") << key;
  EXPECT_EQ(answerOf(config, "activation_checkpointing.cpu_checkpointing").status, "honoured");
  EXPECT_EQ(answerOf(config, "pipeline.activation_checkpoint_interval").note,
            "deepstatic.recompute says what is computed again");
}

TEST(RecomputeSettings, WhatHoldsIsResolvedToItself) {
  for (const char *value : {R"("auto")", R"("none")", R"("full")", "7", R"({"z": "save", "a": "recompute"})"}) {
    const Config config = resolve(own(value) + R"(, "activation_checkpointing": {"number_checkpoints": 2})");
    const std::string json = resolvedJson(config);
    EXPECT_EQ(resolvedJson(resolveConfig(json, {})), json);
    EXPECT_NE(json.find("\"recompute\":"), std::string::npos);
  }
  EXPECT_NE(resolvedJson(resolve(own(R"({"z": "save", "a": "recompute"})"))).find(R"({"z":"save","a":"recompute"})"),
            std::string::npos);
  EXPECT_EQ(resolvedJson(resolve(own("0"))), resolvedJson(resolve(own(R"("none")"))));
}

TEST(RecomputeSettings, Refusals) {
  EXPECT_EQ(refusal(own(R"("fulll")")), R"(it takes "none", "full", "auto", a level or an object of {"REGEX": "save", )"
                                        R"("recompute" or "offload"}; the nearest is "full")");
  EXPECT_EQ(refusal(own("-1")), "a level is at least 0, which computes nothing again");
  EXPECT_EQ(refusal(own("1.5")), "it takes a str or int or object");
  EXPECT_EQ(refusal(own("{}")), R"(it names no module; write {"REGEX": "recompute"}, or "none")");
  EXPECT_EQ(refusal(own(R"({"": "save"})")), "an empty expression names no module");
  EXPECT_EQ(refusal(own("{\"" + std::string(1001, '(') + R"(": "save"})")),
            "an expression has at most 1000 characters");
  EXPECT_EQ(refusal(own(R"({"h": "recomput"})")),
            R"(the rule h is "recomput"; it takes "save", "recompute" or "offload", the nearest is "recompute")");
  EXPECT_EQ(refusal(own(R"({"h": 1})")), R"(the rule h is 1; it takes "save", "recompute" or "offload")");
  for (const char *count : {"0", "-3", "\"two\"", "true", "1.5"})
    EXPECT_EQ(refusal(R"("activation_checkpointing": {"number_checkpoints": )" + std::string(count) + "}"),
              "it is a number of checkpoints and must be at least 1")
        << count;
  EXPECT_EQ(refusal(R"("pipeline": {"activation_checkpoint_interval": 2})"),
            "this is not available yet, only 0 is; deepstatic.recompute says what is computed again");
}

} // namespace
} // namespace ds::config
