//===- KeyTableTest.cpp - docs/config.md cannot drift from the table ------===//
#include "compiler/config/Config.h"
#include "compiler/config/KeyRules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
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

// Every key, written with its own default, gets an answer; those that are not refused say so in the page.
TEST(KeyTable, EveryKeyIsAnswered) {
  int accepted = 0, refused = 0;
  for (const KnownKey &key : knownKeys()) {
    if (key.path.find('*') != std::string_view::npos || key.path.starts_with("optimizer") ||
        key.path.starts_with("scheduler") || !key.alias.empty())
      continue;
    ConfigOverrides overrides;
    overrides.sets = {std::string(key.path) + "=" + (key.fallback == "null" ? "null" : std::string(key.fallback))};
    std::vector<KeyAnswer> answers;
    try {
      answers = resolveConfig("{train_micro_batch_size_per_gpu: 1, optimizer: {type: \"AdamW\"}}", overrides).answers;
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
