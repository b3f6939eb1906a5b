// manifest.json of checkpoints: what is written is read back, and every damage is one sentence.
#include "runtime/checkpoint/Manifest.h"
#include "core/Error.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/Files.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace ds;
using namespace ds::runtime;

namespace {

/// Axis `axis` cuts [2, 4] into two halves of columns.
plan::proto::Placement halves(uint32_t axis) {
  plan::proto::Placement placement;
  plan::proto::AxisPlacement &along = *placement.add_axes();
  along.set_axis(axis);
  plan::proto::Shard &shard = *along.mutable_shard();
  shard.set_dimension(1);
  shard.set_repeat(1);
  plan::proto::Block &block = *shard.add_blocks();
  block.set_stride(2);
  block.set_size(2);
  return placement;
}

plan::proto::Placement varyingAlong(uint32_t axis) {
  plan::proto::Placement placement;
  plan::proto::AxisPlacement &along = *placement.add_axes();
  along.set_axis(axis);
  along.set_varies(true);
  return placement;
}

plan::proto::World worldOf(const std::vector<std::pair<std::string, uint32_t>> &axes) {
  plan::proto::World world;
  for (const auto &[name, size] : axes) {
    plan::proto::Axis &axis = *world.add_axes();
    axis.set_name(name);
    axis.set_size(size);
  }
  return world;
}

Manifest example() {
  Manifest manifest{.deepstatic = "0.1.0",
                    .plan = std::string(64, 'a'),
                    .model = "",
                    .run = "00000000deadbeef",
                    .step = 300,
                    .samples = 2400,
                    .samplesPerStep = 8,
                    .seed = 7,
                    .shuffle = true};
  manifest.data = {{"text.safetensors", 4096, "0123456789abcdef"}};
  manifest.set = {{200, "optimizer.params.lr", "0.001"}};
  manifest.layout = {.ranks = 4,
                     .dataParallel = 2,
                     .stages = 1,
                     .zero = 3,
                     .world = worldOf({{"pipe", 1}, {"data", 2}, {"tensor", 2}})};
  manifest.variables = {{.name = "wte.weight",
                         .aliases = {"lm_head.weight"},
                         .dtype = "F32",
                         .shape = {4, 3},
                         .versions = {{{"rank-00000.safetensors", "wte.weight@0", 0, 7},
                                       {"rank-00001.safetensors", "wte.weight@7", 7, 12}}}},
                        {.name = "wte.weight::exp_avg",
                         .kind = Manifest::Kind::Optimizer,
                         .of = "wte.weight",
                         .slot = "exp_avg",
                         .dtype = "F32",
                         .shape = {4, 3},
                         .versions = {{{"rank-00000.safetensors", "wte.weight::exp_avg", 0, 12}}}},
                        {.name = "running_mean",
                         .kind = Manifest::Kind::Buffer,
                         .persistent = false,
                         .dtype = "F32",
                         .shape = {3},
                         .placement = varyingAlong(1),
                         .versions = {{{"rank-00000.safetensors", "running_mean", 0, 3, 0}},
                                      {{"rank-00001.safetensors", "running_mean", 0, 3, 2}}}},
                        {.name = "step",
                         .kind = Manifest::Kind::Scalar,
                         .dtype = "F64",
                         .shape = {},
                         .versions = {{{"rank-00001.safetensors", "step", 0, 1}}}},
                        {.name = "nothing", .kind = Manifest::Kind::Buffer, .dtype = "I64", .shape = {0, 5}},
                        {.name = "columns",
                         .dtype = "F32",
                         .shape = {2, 4},
                         .placement = halves(2),
                         .versions = {{{"rank-00000.safetensors", "columns#0", 0, 4, 0},
                                       {"rank-00001.safetensors", "columns#1", 0, 4, 3}}}}};
  manifest.files = {{"rank-00000.safetensors", 200, std::string(64, '0')},
                    {"rank-00001.safetensors", 150, std::string(64, 'f')}};
  return manifest;
}

/// The sentence with which a text is refused.
std::string refusal(const std::string &text) {
  try {
    (void)parseManifest(text);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

/// As an older ds-run wrote it.
std::string unsealed(const std::string &text) { return text.substr(0, text.rfind(",\n \"sha256\"")) + "\n}\n"; }

/// The example's unsealed text with one part replaced.
std::string edited(const std::string &part, const std::string &by) {
  std::string text = unsealed(manifestText(example()));
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part << " is not in " << text;
  return text.replace(at, part.size(), by);
}

TEST(ManifestTest, WhatIsWrittenIsReadBack) {
  const std::string text = manifestText(example());
  const Manifest manifest = parseManifest(text);
  EXPECT_EQ(manifestText(manifest), text);
  EXPECT_EQ(manifest.samples, 2400U);
  EXPECT_TRUE(manifest.shuffle);
  EXPECT_EQ(manifest.layout.zero, 3U);
  ASSERT_NE(manifest.find("running_mean"), nullptr);
  EXPECT_FALSE(manifest.find("running_mean")->persistent);
  EXPECT_EQ(manifest.find("running_mean")->versions[1][0].file, "rank-00001.safetensors");
  EXPECT_EQ(manifest.find("wte.weight")->versions[0][1].end, 12U);
  EXPECT_EQ(manifest.find("wte.weight::exp_avg")->of, "wte.weight");
  EXPECT_EQ(manifest.find("lm_head.weight"), nullptr);
  EXPECT_EQ(manifest.find("columns")->versions[0][1].rank, 1U);
}

/// What is consistent in itself: the elements of two alike variables, another sample, a key that stands twice.
TEST(ManifestTest, EditsAreNoticed) {
  const std::string text = manifestText(example());
  EXPECT_TRUE(parseManifest(text).isSealed);
  for (const auto &[part, by] :
       {std::pair("\"samples\": 2400", "\"samples\": 2408"), std::pair("\"seed\": 7", "\"seed\": 8"),
        std::pair("\n}\n", ",\n \"samples\": 0\n}\n"), std::pair("\n}\n", "\n} \n"), std::pair("{\n", "{ \n")}) {
    std::string other = text;
    other.replace(other.find(part), std::string(part).size(), by);
    EXPECT_TRUE(refusal(other).starts_with("it was edited after it was written, or is damaged: the SHA-256 of its text "
                                           "is "))
        << part << ": " << refusal(other);
  }
}

/// Manifests of older versions are read, with what can be seen in them.
TEST(ManifestTest, AnUnsealedOneIsReadAndChecked) {
  const std::string text = unsealed(manifestText(example()));
  EXPECT_FALSE(parseManifest(text).isSealed);
  EXPECT_EQ(manifestText(parseManifest(text)), manifestText(example()));
  EXPECT_EQ(refusal(edited("\"tensor\": \"wte.weight@7\"", "\"tensor\": \"wpe.weight@7\"")),
            "variable wte.weight lies in tensor wpe.weight@7 from element 7 on, whose name is another's: the pieces of "
            "two were exchanged");
  EXPECT_EQ(refusal(edited("\"samples\": 2400", "\"samples\": 18446744073709551615")),
            "its samples (18446744073709551615) is more than any run reaches (4611686018427387904)");
}

/// Format 2 knew no shards.
TEST(ManifestTest, Format2IsRead) {
  Manifest expected = example();
  expected.variables.pop_back();
  auto older = nlohmann::ordered_json::parse(unsealed(manifestText(expected)));
  older["format"] = 2;
  EXPECT_EQ(manifestText(parseManifest(older.dump())), manifestText(expected));
}

/// Format 1 knew the data axis alone.
TEST(ManifestTest, Format1IsRead) {
  Manifest expected = example();
  expected.variables.pop_back();
  auto older = nlohmann::ordered_json::parse(unsealed(manifestText(expected)));
  older["format"] = 1;
  older["layout"].erase("axes");
  auto &mean = older["variables"][2];
  mean.erase("placement");
  mean["other_data_ranks"] = {nlohmann::ordered_json::array({mean["pieces"][1]})};
  mean["pieces"].erase(1);
  expected.layout.world = worldOf({{"data", 2}});
  expected.variables[2].placement = varyingAlong(0);
  expected.variables[2].versions[1][0].rank = 1;
  EXPECT_EQ(manifestText(parseManifest(older.dump())), manifestText(expected));
  older["layout"]["data_parallel"] = 3;
  EXPECT_EQ(refusal(older.dump()), "variable running_mean has values of 2 ranks, but along data the layout has 3");
}

TEST(ManifestTest, KeysStandInTheOrderOfTheFormat) {
  const std::string text = manifestText(example());
  size_t last = 0;
  for (const char *key : {"format", "deepstatic", "plan", "model", "run", "step", "samples", "samples_per_step", "seed",
                          "shuffle", "data", "set", "layout", "variables", "files", "sha256"}) {
    const size_t at = text.find("\n \"" + std::string(key) + "\":");
    ASSERT_NE(at, std::string::npos) << key;
    EXPECT_GT(at, last) << key;
    last = at;
  }
}

TEST(ManifestTest, NoObjectIsNoManifest) {
  EXPECT_EQ(refusal("{"), "it is no JSON object, so it is damaged or no checkpoint's manifest");
  EXPECT_EQ(refusal("[1]"), "it is no JSON object, so it is damaged or no checkpoint's manifest");
  EXPECT_EQ(refusal("{}"), "format is missing");
}

struct Damage {
  std::string part, by; ///< an edit of the example's text
  std::string sentence;
};

const std::vector<Damage> damages = {
    {"\"format\": 3", "\"format\": 4",
     "its format is 4, but this ds-run reads formats 1 to 3; use the ds-run that wrote it, or a newer one"},
    {"\"step\": 300", "\"step\": -3", "step is not a whole number"},
    {"\"shuffle\": true", "\"shuffle\": 1", "shuffle is not true or false"},
    {"\"kind\": \"scalar\"", "\"kind\": \"tensor\"",
     "variables[3].kind is tensor, not parameter, optimizer, buffer or scalar"},
    {"\"begin\": 7", "\"begin\": 6",
     "the pieces of variable wte.weight do not follow each other: elements 6 to 12 come where 7 is next"},
    {"\"end\": 3", "\"end\": 2", "the pieces of variable running_mean have 2 elements, but shape [3] has 3"},
    {"\"dtype\": \"F64\"", "\"dtype\": \"F65\"", "variable step has dtype 'F65', which is not known"},
    {"\"name\": \"nothing\"", "\"name\": \"step\"", "its variable step stands twice"},
    {"\"of\": \"wte.weight\"", "\"of\": \"wpe.weight\"",
     "variable wte.weight::exp_avg is state of wpe.weight, which is none of its parameters"},
    {"\"size\": 2", "\"size\": 3", "variable running_mean has values of 2 ranks, but along data the layout has 3"},
    {"\"size\": 2", "\"size\": 1", "variables[2].pieces[1].at is 1 along data, which has 1 ranks"},
    {"\"name\": \"data\"", "\"name\": \"expert\"",
     "variables[2].placement[0].axis says data, which is no axis of the layout"},
    {"\"data\": 1\n", "\"data\": 0\n",
     "the pieces of variable running_mean do not follow each other: elements 0 to 3 come where 3 is next"},
    {"\"data\": 0\n", "\"data\": 1\n", "the pieces of variable running_mean have 0 elements, but shape [3] has 3"},
    {"\"varies\"", "\"whole\"", "variables[2].placement[0].how is whole, not varies or shard"},
    {std::string(64, 'f'), "f00", "the sha256 of its file rank-00001.safetensors is not 64 hexadecimal digits"},
    {"\"file\": \"rank-00000.safetensors\"", "\"file\": \"other\"",
     "variable wte.weight lies in other, which is not among its files"},
    {"{\n   \"name\": \"rank-00000.safetensors\"", "{\n   \"name\": \"../rank\"",
     "its file '../rank' is no name within the folder"},
    {"\"name\": \"data\"", "\"name\": \"tensor\"", "layout: it has two axes tensor"},
    {"\"shard\"", "\"cut\"", "variables[5].placement[0].how is cut, not varies or shard"},
    {"\"stride\": 2", "\"stride\": 1",
     "variable columns, placement, axis tensor: elements 1 to 1 of dimension 1 belong to two parts"},
    {"\"tensor\": 1\n", "\"tensor\": 0\n",
     "the pieces of variable columns do not follow each other: elements 0 to 4 come where 4 is next"},
    {"\"columns#1\"", "\"columns#0\"",
     "variable columns lies in tensor columns#0 from element 0 on, whose name is another's: the pieces of two were "
     "exchanged"},
};

TEST(ManifestTest, EveryDamageIsOneSentence) {
  for (const Damage &damage : damages)
    EXPECT_EQ(refusal(edited(damage.part, damage.by)), damage.sentence);
}

TEST(ManifestTest, NoByteOfItCrashesTheReader) {
  const std::string text = manifestText(example());
  for (size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_NE(refusal(text.substr(0, length)), "");
  for (size_t at = 0; at < text.size(); ++at)
    for (const char byte : {'\0', '9', '-', '"', '{', '\xFF'}) {
      std::string damaged = text;
      damaged[at] = byte;
      (void)refusal(damaged); // whatever it says, and under sanitizers
    }
}

TEST(ManifestTest, AFileThatIsNotThereIsNamed) {
  try {
    (void)readManifest("/nowhere/manifest.json");
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "/nowhere/manifest.json cannot be read: No such file or directory");
  }
}

} // namespace
