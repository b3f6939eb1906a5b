//===- TensorSettingsTest.cpp - deepstatic.tensor_parallel and DeepSpeed's --===//
#include "compiler/config/Config.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace ds::config {
namespace {

ConfigOverrides overridesOf(int64_t ranks, std::vector<std::string> sets) {
  ConfigOverrides overrides;
  overrides.ranks = ranks;
  overrides.sets = std::move(sets);
  return overrides;
}

/// With two samples a micro-batch.
Config resolve(const std::string &members, int64_t ranks, std::vector<std::string> sets = {}) {
  return resolveConfig(R"({"optimizer": {"type": "AdamW"}, "train_micro_batch_size_per_gpu": 2, )" + members + "}",
                       overridesOf(ranks, std::move(sets)));
}

ConfigError refusal(const std::string &members, int64_t ranks, std::vector<std::string> sets = {}) {
  try {
    resolve(members, ranks, std::move(sets));
  } catch (const ConfigError &error) {
    EXPECT_EQ(error.details, std::vector<std::string>());
    return error;
  }
  ADD_FAILURE() << "accepted: " << members;
  return ConfigError("");
}

std::string own(const std::string &size) { return R"("deepstatic": {"tensor_parallel": {"size": )" + size + "}}"; }

KeyAnswer answerOf(const Config &config, std::string_view path) {
  const auto found = std::ranges::find(config.answers, path, &KeyAnswer::path);
  return found == config.answers.end() ? KeyAnswer{} : *found;
}

TEST(TensorSettings, OneRankByDefault) {
  const Config config = resolve(R"("steps_per_print": 1)", 4);
  EXPECT_EQ(config.tensor.size, 1);
  EXPECT_EQ(config.ranks, 4);
  EXPECT_FALSE(config.sharesModel());
}

TEST(TensorSettings, DataRanksAreWhatIsLeft) {
  const Config config = resolve(own("2") + R"(, "pipeline": {"stages": 2}, "gradient_accumulation_steps": 3)", 8);
  EXPECT_EQ(config.tensor.size, 2);
  EXPECT_EQ(config.ranks, 2);
  EXPECT_EQ(config.worldRanks, 8);
  EXPECT_EQ(config.trainBatchSize, 2 * 3 * 2); // micro-batch x accumulation x data-parallel width
  EXPECT_EQ(answerOf(config, "deepstatic.tensor_parallel.size").status, "honoured");
}

TEST(TensorSettings, DeepSpeedsSection) {
  for (const char *section :
       {R"({"autotp_size": 4})", R"({"tp": {"tp_size": 4}})", R"({"autotp_size": 4, "tp": {"tp_size": 4}})"})
    EXPECT_EQ(resolve(R"("tensor_parallel": )" + std::string(section), 4).tensor.size, 4) << section;
  const Config off = resolve(R"("tensor_parallel": {"autotp_size": 0, "dtype": "bfloat16", "tp": {"tp_size": 1}})", 4);
  EXPECT_EQ(off.tensor.size, 1);
  EXPECT_EQ(answerOf(off, "tensor_parallel.dtype").status, "subsumed");
}

TEST(TensorSettings, ASetWinsOverTheFile) {
  const std::string file = R"("tensor_parallel": {"autotp_size": 4, "tp": {"tp_size": 4}})";
  const Config config = resolve(file, 4, {"deepstatic.tensor_parallel.size=2"});
  EXPECT_EQ(config.tensor.size, 2);
  EXPECT_EQ(answerOf(config, "tensor_parallel.autotp_size"),
            (KeyAnswer{"tensor_parallel.autotp_size", "4", "subsumed", "--set deepstatic.tensor_parallel.size wins"}));
  EXPECT_EQ(resolve(own("4"), 4, {"tensor_parallel.autotp_size=0"}).tensor.size, 1);
}

TEST(TensorSettings, RefusesKeysThatDisagree) {
  EXPECT_STREQ(refusal(R"("tensor_parallel": {"autotp_size": 2, "tp": {"tp_size": 4}})", 4).what(),
               "ds_config.json:1: tensor_parallel.tp.tp_size is 4; tensor_parallel.autotp_size, which means the same, "
               "is 2; write one of them, or the same in both");
  EXPECT_STREQ(refusal(R"("tensor_parallel": {"autotp_size": 0}, )" + own("4"), 4).what(),
               "ds_config.json:1: tensor_parallel.autotp_size is 0; deepstatic.tensor_parallel.size, which means the "
               "same, is 4; write one of them, or the same in both");
}

TEST(TensorSettings, RefusesSizesThatDoNotFitTheRanks) {
  const ConfigError indivisible = refusal(own("3"), 8);
  EXPECT_STREQ(
      indivisible.what(),
      "ds_config.json:1: deepstatic.tensor_parallel.size is 3; it must divide --ranks, which is 8: 2 and 4 do");
  EXPECT_EQ(indivisible.tryLine, "--set deepstatic.tensor_parallel.size=4");
  EXPECT_STREQ(refusal(own("3") + R"(, "pipeline": {"stages": 2})", 8).what(),
               "ds_config.json:1: deepstatic.tensor_parallel.size is 3; it must divide the 4 ranks of a stage, of "
               "--ranks 8 and 2 stages: 2 and 4 do");
  const ConfigError tooMany = refusal(own("4") + R"(, "pipeline": {"stages": 2})", 4);
  EXPECT_STREQ(tooMany.what(), "ds_config.json:1: deepstatic.tensor_parallel.size is 4; so many ranks share each "
                               "layer, and --ranks is 4 for 2 stages");
  EXPECT_EQ(tooMany.tryLine, "--ranks 8");
  EXPECT_EQ(refusal(own("9000000000000000000"), 4).tryLine, "");
  EXPECT_STREQ(refusal(R"("tensor_parallel": {"tp": {"tp_size": 0}})", 2).what(),
               "ds_config.json:1: tensor_parallel.tp.tp_size is 0; it is the number of ranks that share each layer and "
               "must be at least 1");
}

TEST(TensorSettings, RefusesWhatIsNotBuiltByName) {
  EXPECT_STREQ(refusal(R"("tensor_parallel": {"preset_model": "llama"})", 1).what(),
               "ds_config.json:1: tensor_parallel.preset_model is \"llama\"; this is not available yet, only null is; "
               "the graph says where weights are cut");
  EXPECT_STREQ(refusal(R"("tensor_parallel": {"partition_config": {"use_default_specs": false}})", 1).what(),
               "ds_config.json:1: tensor_parallel.partition_config is {\"use_default_specs\": false}; this is not "
               "available yet, only null is; the graph says where weights are cut");
  EXPECT_STREQ(refusal(R"("activation_checkpointing": {"partition_activations": true}, )" + own("2"), 2).what(),
               "ds_config.json:1: activation_checkpointing.partition_activations is true; tensor ranks keep whole what "
               "they have in common for the backward; shares of it are not available yet");
}

TEST(TensorSettings, ResolvedJsonResolvesToItself) {
  const std::string once = resolvedJson(resolve(own("2"), 4));
  EXPECT_NE(once.find(R"("tensor_parallel":{"size":2})"), std::string::npos);
  EXPECT_EQ(resolvedJson(resolveConfig(once, overridesOf(4, {}))), once);
}

TEST(TensorSettings, BatchSizesCountDataParallelRanks) {
  const Config config = resolve(own("2"), 8);
  EXPECT_EQ(config.trainBatchSize, 8);
  EXPECT_STREQ(refusal(R"("train_batch_size": 9, )" + own("2"), 4).what(),
               "ds_config.json:1: train_batch_size is 9; it must be a multiple of train_micro_batch_size_per_gpu 2 x 2 "
               "data-parallel ranks = 4");
}

} // namespace
} // namespace ds::config
