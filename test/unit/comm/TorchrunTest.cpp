//===- TorchrunTest.cpp - what torchrun tells a process -------------------===//
#include "runtime/comm/tcp/Torchrun.h"
#include "core/Error.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>

namespace ds::runtime {
namespace {

using Variables = std::map<std::string, std::string>;

const Variables sound = {{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}, {"RANK", "5"}, {"WORLD_SIZE", "8"}};

std::optional<Torchrun> read(const Variables &variables) {
  return readTorchrun([&](const char *name) {
    const auto variable = variables.find(name);
    return variable == variables.end() ? nullptr : variable->second.c_str();
  });
}

std::string refusal(const std::string &name, const std::optional<std::string> &value) {
  Variables variables = sound;
  variables.erase(name);
  if (value)
    variables[name] = *value;
  try {
    (void)read(variables);
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

TEST(Torchrun, IsRead) {
  const auto torchrun = read(sound);
  ASSERT_TRUE(torchrun.has_value());
  EXPECT_EQ(torchrun->address.text(), "node0:29500");
  EXPECT_EQ(torchrun->rank, 5u);
  EXPECT_EQ(torchrun->ranks, 8u);
  EXPECT_FALSE(read({}).has_value());
}

TEST(Torchrun, FindsTheRunsIdAndSecret) {
  const auto key = [](const Variables &more) {
    Variables variables = sound;
    variables.insert(more.begin(), more.end());
    return read(variables)->key;
  };
  EXPECT_EQ(key({}).id + key({}).secret, "");
  EXPECT_EQ(key({{"TORCHELASTIC_RUN_ID", "job7"}}).id, "job7");
  EXPECT_EQ(key({{"TORCHELASTIC_RUN_ID", "none"}, {"DS_RUN_ID", "mine"}}).id, "mine");
  EXPECT_EQ(key({{"DS_RUN_SECRET", "sesame"}}).secret, "sesame");
  const std::string path = testing::TempDir() + "secret";
  std::ofstream(path) << "from a file\n";
  EXPECT_EQ(key({{"DS_RUN_SECRET", "sesame"}, {"DS_RUN_SECRET_FILE", path}}).secret, "from a file");
  std::ofstream(path).close();
  EXPECT_EQ(refusal("DS_RUN_SECRET_FILE", path), "DS_RUN_SECRET_FILE is " + path +
                                                     ", whose first line cannot be read or is empty; it must be the "
                                                     "run's secret, the same for all ranks");
  EXPECT_EQ(refusal("DS_RUN_ID", std::string(257, 'x')),
            "the run's id (DS_RUN_ID or TORCHELASTIC_RUN_ID) has 257 bytes, but may have 256; shorten it");
}

/// torchrun's own store listens on MASTER_PORT, so the next one is ours.
TEST(Torchrun, LeavesThePortOfItsAgentAlone) {
  Variables variables = sound;
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(read(variables)->address.port, 29501);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(read(variables)->address.port, 29500);
}

TEST(Torchrun, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("RANK", std::nullopt),
            "WORLD_SIZE is set, as by torchrun, but RANK is not; MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE "
            "belong together");
  EXPECT_EQ(refusal("MASTER_ADDR", "").substr(0, 54), "WORLD_SIZE is set, as by torchrun, but MASTER_ADDR is ");
  EXPECT_EQ(refusal("RANK", "8"), "RANK is \"8\", but must be a number from 0 to 7");
  EXPECT_EQ(refusal("RANK", "-1"), "RANK is \"-1\", but must be a number from 0 to 7");
  EXPECT_EQ(refusal("MASTER_PORT", "http"), "MASTER_PORT is \"http\", but must be a number from 1 to 65534");
  EXPECT_EQ(refusal("MASTER_PORT", "99999999999"),
            "MASTER_PORT is \"99999999999\", but must be a number from 1 to 65534");
  EXPECT_EQ(refusal("WORLD_SIZE", "0"), "WORLD_SIZE is \"0\", but must be a number from 1 to 1048576");
}

} // namespace
} // namespace ds::runtime
