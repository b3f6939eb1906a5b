//===- KeyTableTest.cpp - docs/config.md cannot drift from the table ------===//
#include "compiler/config/Config.h"
#include "compiler/config/KeyRules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

namespace ds::config {
namespace {

namespace fs = std::filesystem;

std::string readText(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(KeyTable, ThePageIsWhatTheTableSays) {
  const fs::path page = fs::path(DS_SOURCE_DIR) / "docs" / "config.md";
  if (std::getenv("DS_UPDATE_DOCS"))
    std::ofstream(page, std::ios::binary) << keyTable();
  EXPECT_TRUE(readText(page) == keyTable()) << page << " is stale; write it anew: DS_UPDATE_DOCS=1 config_test";
}

TEST(KeyTable, KeysAreSortedAndDifferent) {
  const auto keys = knownKeys();
  EXPECT_GT(keys.size(), 400u);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end(), [](const auto &a, const auto &b) { return a.path < b.path; }));
  for (size_t i = 1; i < keys.size(); ++i)
    EXPECT_NE(keys[i - 1].path, keys[i].path);
}

TEST(KeyTable, EveryAliasAndSwitchIsAKey) {
  for (const KnownKey &key : knownKeys()) {
    if (!key.alias.empty()) {
      EXPECT_TRUE(findKey(key.alias) || isSection(key.alias)) << key.path;
      // renameAliases() changes the last key only.
      EXPECT_EQ(key.path.substr(0, key.path.rfind('.') + 1), key.alias.substr(0, key.alias.rfind('.') + 1));
    }
  }
  for (const OffSwitch &off : offSwitches())
    EXPECT_TRUE(findKey(std::string(off.section) + "." + std::string(off.key))) << off.section;
}

TEST(KeyTable, WildcardsStandForOneName) {
  const std::string metrics = "data_efficiency.data_sampling.curriculum_learning.curriculum_metrics";
  EXPECT_TRUE(findKey(metrics + ".seqlen.max_difficulty"));
  EXPECT_FALSE(findKey(metrics + ".seqlen.deep.max_difficulty"));
  EXPECT_TRUE(isSection(metrics + ".anything"));
}

/// {"a": {"b": value}} for the path a.b.
std::string document(std::string_view path, std::string_view value) {
  const size_t dot = path.find('.');
  return "{\"" + std::string(path.substr(0, dot)) +
         "\": " + (dot == std::string_view::npos ? std::string(value) : document(path.substr(dot + 1), value)) + "}";
}

// Every key, written with its own default, gets an answer; those that are not refused say so in the page.
TEST(KeyTable, EveryKeyIsAnswered) {
  int accepted = 0, refused = 0;
  for (const KnownKey &key : knownKeys()) {
    if (key.path.find('*') != std::string_view::npos || key.path.starts_with("optimizer") ||
        key.path.starts_with("scheduler") || !key.alias.empty())
      continue;
    ConfigOverrides overrides;
    overrides.sets = {"train_micro_batch_size_per_gpu=1", "optimizer.type=AdamW"};
    std::vector<KeyAnswer> answers;
    try {
      answers = resolveConfig(document(key.path, key.fallback), overrides).answers;
      ++accepted;
      EXPECT_FALSE(key.removed) << key.path;
    } catch (const ConfigError &error) {
      answers = error.answers;
      ++refused;
    }
    const auto answer =
        std::find_if(answers.begin(), answers.end(), [&](const KeyAnswer &a) { return a.path == key.path; });
    ASSERT_NE(answer, answers.end()) << key.path;
    EXPECT_TRUE(std::set<std::string>({"honoured", "subsumed", "rejected"}).contains(answer->status)) << key.path;
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(refused, 10); // the removed ones at least
}

std::string withZero(const std::string &member) {
  return "{train_micro_batch_size_per_gpu: 1, optimizer: {type: \"AdamW\"}, zero_optimization: {stage: 3, "
         "overlap_comm: true" +
         member + "}}";
}

/// Another value than the key's default, or "" where one would ask for a whole section.
std::string otherValue(const KnownKey &key) {
  if (key.type.starts_with("bool"))
    return key.fallback == "true" ? "false" : "true";
  return key.type.starts_with("int") ? "2" : "";
}

// Every switch and number of zero_optimization, set to another value than its default on 4 ranks of stage 3: a plan
// obeys it, or its answer says why that is not needed, or it is refused by name. None is ignored.
TEST(KeyTable, EveryKeyOfZeroIsHonouredOrSaysWhyNot) {
  ConfigOverrides overrides;
  overrides.ranks = 4;
  const std::string plain = resolvedJson(resolveConfig(withZero(""), overrides));
  std::map<std::string, std::set<std::string>> byStatus;
  for (const KnownKey &key : knownKeys()) {
    const std::string prefix = "zero_optimization.", name(key.path.substr(std::min(key.path.size(), prefix.size())));
    if (!key.path.starts_with(prefix) || name.find('.') != std::string::npos || !key.alias.empty() ||
        otherValue(key).empty() || name == "stage" || name == "overlap_comm")
      continue;
    try {
      const Config config = resolveConfig(withZero(", " + name + ": " + otherValue(key)), overrides);
      const auto answer = std::find_if(config.answers.begin(), config.answers.end(),
                                       [&](const KeyAnswer &a) { return a.path == key.path; });
      ASSERT_NE(answer, config.answers.end()) << name;
      byStatus[answer->status].insert(name);
      EXPECT_EQ(answer->status == "subsumed", !answer->note.empty()) << name;
      EXPECT_EQ(resolvedJson(config) != plain, answer->status == "honoured") << name;
    } catch (const ConfigError &error) {
      byStatus["refused"].insert(name);
      EXPECT_NE(std::string(error.what()).find(key.path), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(byStatus["honoured"],
            (std::set<std::string>{"allgather_bucket_size", "reduce_bucket_size", "stage3_max_live_parameters",
                                   "stage3_max_reuse_distance", "stage3_model_persistence_threshold",
                                   "stage3_param_persistence_threshold", "stage3_prefetch_bucket_size"}));
  for (const char *name : {"contiguous_gradients", "ignore_unused_parameters", "reduce_scatter",
                           "round_robin_gradients", "sub_group_size", "zero_hpz_partition_size"})
    EXPECT_TRUE(byStatus["subsumed"].contains(name)) << name;
  for (const char *name : {"cpu_offload", "zero_quantized_gradients", "zero_quantized_weights"})
    EXPECT_TRUE(byStatus["refused"].contains(name)) << name;
}

// Where DeepSpeed's list of keys is at hand, every one of its paths is a key of ours.
TEST(KeyTable, NoKeyOfDeepSpeedIsUnknown) {
  const char *data = std::getenv("DS_DATA_DIR");
  const fs::path list =
      (data ? fs::path(data) : fs::path(DS_SOURCE_DIR) / ".." / "shared" / "data") / "ds_config_keys.json";
  if (!fs::exists(list))
    GTEST_SKIP() << "no list of DeepSpeed's keys at " << list << "; DS_DATA_DIR names its folder";
  const std::string text = readText(list), mark = "{\"path\": \"";
  int seen = 0;
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1), ++seen) {
    const size_t begin = at + mark.size();
    const std::string path = text.substr(begin, text.find('"', begin) - begin);
    EXPECT_TRUE(path == "optimizer.params.*" || findKey(path)) << path;
  }
  EXPECT_GT(seen, 400);
}

} // namespace
} // namespace ds::config
