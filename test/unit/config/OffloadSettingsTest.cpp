//===- OffloadSettingsTest.cpp ---------------------------------------------===//
#include "compiler/config/Config.h"

#include <algorithm>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ds::config {
namespace {

Config resolve(const std::string &members) {
  return resolveConfig("{\"train_batch_size\": 1, " + members + "}", ConfigOverrides());
}

/// "mlp=nvme .*=cpu", in the order in which they decide.
std::string rulesOf(const std::string &members) {
  std::string text;
  for (const OffloadRule &rule : resolve(members).offload)
    text += (text.empty() ? "" : " ") + rule.modules + "=" + rule.device;
  return text;
}

std::string refusal(const std::string &members) {
  try {
    resolve(members);
  } catch (const ConfigError &error) {
    return error.what();
  }
  return "accepted";
}

TEST(OffloadSettings, RulesOfRecomputeComeFirstAndThatForAllLast) {
  EXPECT_EQ(rulesOf(R"("bf16": {"enabled": false})"), "");
  EXPECT_EQ(rulesOf(R"("deepstatic": {"offload": "none"})"), "");
  EXPECT_EQ(rulesOf(R"("activation_checkpointing": {"cpu_checkpointing": true})"), ".*=cpu");
  EXPECT_EQ(rulesOf(R"("deepstatic": {"recompute": {"a": "save", "b": "recompute"}})"), "");
  EXPECT_EQ(rulesOf(R"("deepstatic": {"recompute": {"a": "save", "b": "offload"}, "offload": {"c": "none", "d": "cpu"}},
                       "activation_checkpointing": {"cpu_checkpointing": true})"),
            "a=none b=cpu c=none d=cpu .*=cpu");
}

TEST(OffloadSettings, FilesLieInOneFolder) {
  const auto folderOf = [](const std::string &members) { return resolve(members).nvme->folder; };
  EXPECT_FALSE(resolve(R"("zero_optimization": {"offload_optimizer": {"device": "cpu", "nvme_path": "/a"}})").nvme);
  EXPECT_EQ(folderOf(R"("zero_optimization": {"offload_optimizer": {"device": "nvme", "nvme_path": "/a"}})"), "/a");
  EXPECT_EQ(folderOf(R"("zero_optimization": {"offload_param": {"device": "nvme", "nvme_path": "/b"}})"), "/b");
  const std::string values = R"("deepstatic": {"offload": {"mlp": "nvme"}, "nvme_path": "/c"})";
  EXPECT_EQ(folderOf(values), "/c");
  EXPECT_EQ(resolveConfig(resolvedJson(resolve(values)), ConfigOverrides()).nvme->folder, "/c");
  EXPECT_NE(refusal(R"("zero_optimization": {"offload_param": {"device": "nvme", "nvme_path": "/b"},
                       "offload_optimizer": {"device": "nvme", "nvme_path": "/a"}})")
                .find("a rank has one file, and that is in /a"),
            std::string::npos);
  const Config config = resolve(R"("zero_optimization": {"offload_param": {"device": "nvme", "nvme_path": "/b"}},
                                   "aio": {"block_size": 8192, "queue_depth": 3})");
  EXPECT_EQ(config.nvme->blockBytes, 8192);
  EXPECT_EQ(config.nvme->queueDepth, 3);
}

// A group of DeepSpeed's holds at least one whole parameter, whatever the size: posted files have 0 and 1.
TEST(OffloadSettings, AnyGroupSizeIsOneParameter) {
  for (const char *size : {"0", "1", "5e4", "1e9"}) {
    const Config config = resolve(R"("zero_optimization": {"sub_group_size": )" + std::string(size) +
                                  R"(, "offload_optimizer": {"device": "nvme", "nvme_path": "/a"}})");
    const auto answer = std::ranges::find(config.answers, "zero_optimization.sub_group_size", &KeyAnswer::path);
    ASSERT_NE(answer, config.answers.end());
    EXPECT_EQ(answer->status, "subsumed") << size;
  }
}

TEST(OffloadSettings, AShareOfTheOptimizerStateLeaves) {
  const auto withRatio = [](const std::string &device, const std::string &ratio) {
    return resolve(R"("zero_optimization": {"offload_optimizer": {"device": ")" + device + R"(", "ratio": )" + ratio +
                   "}}");
  };
  EXPECT_EQ(resolve(R"("zero_optimization": {"offload_optimizer": {"device": "cpu"}})").offloadRatio, 1);
  const Config some = withRatio("cpu", "0.25");
  EXPECT_EQ(some.offloadRatio, 0.25);
  EXPECT_FALSE(some.offloadRatioAuto);
  EXPECT_NE(resolvedJson(some).find(R"("offload_optimizer":{"device":"cpu","ratio":0.25})"), std::string::npos);
  EXPECT_EQ(withRatio("none", "0.25").offloadRatio, 1); // nothing leaves
  const Config chosen = withRatio("cpu", R"("auto")");
  EXPECT_TRUE(chosen.offloadRatioAuto);
  EXPECT_EQ(chosen.offloadRatio, 1); // until plans are compared
}

TEST(OffloadSettings, Refusals) {
  const std::string there = R"("deepstatic": {"offload": {"mlp": "nvme"}, "nvme_path": "/c"}, )";
  for (const auto &[members, sentence] : std::vector<std::pair<std::string, std::string>>{
           {R"("deepstatic": {"offload": "all"})",
            R"(it takes "none", "auto" or an object of {"REGEX": "cpu" or "nvme"})"},
           {R"("deepstatic": {"offload": {"mlp": "disk"}})", R"(it takes "none", "cpu" or "nvme")"},
           {R"("deepstatic": {"offload": {"": "cpu"}})", "an empty expression names no module"},
           {R"("deepstatic": {"offload": {"mlp": "nvme"}})", "no key nvme_path names a folder"},
           {R"("deepstatic": {"offload": {"mlp": "nvme"}, "nvme_path": "/c\u0000d"})", "has a control character"},
           {R"("zero_optimization": {"offload_optimizer": {"device": "cpu", "ratio": 1.25}})", "it takes 0 to 1"},
           {R"("zero_optimization": {"offload_optimizer": {"device": "cpu", "ratio": "most"}})", "it takes a float"},
           {there + R"("aio": {"block_size": 5000})", "must be a multiple of 4096"},
           {there + R"("aio": {"queue_depth": 0})", "it takes 1 to 1024"}})
    EXPECT_NE(refusal(members).find(sentence), std::string::npos) << refusal(members);
}

} // namespace
} // namespace ds::config
