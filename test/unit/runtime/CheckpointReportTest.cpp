// ds-run checkpoint ls and verify, and names of experts.
#include "runtime/checkpoint/CheckpointReport.h"
#include "core/Sha256.h"
#include "runtime/checkpoint/FusedExperts.h"
#include "runtime/checkpoint/Manifest.h"
#include "test/unit/runtime/Files.h"

#include <cstddef>
#include <filesystem>
#include <gtest/gtest.h>
#include <span>
#include <string>

namespace ds::test {
namespace {

/// DIR/global_step2 and global_step10 with a file each, and one that is being written.
class Report : public testing::Test {
protected:
  Report() {
    for (const uint64_t step : {10, 2}) {
      const std::string place = folder / ("global_step" + std::to_string(step)), bytes = "bytes of " + place;
      std::filesystem::create_directory(place);
      writeFile(place + "/rank-00000.safetensors", bytes);
      runtime::Manifest manifest{.plan = std::string(64, 'a'), .step = step, .samples = step, .samplesPerStep = 1};
      manifest.layout = {.ranks = 4, .dataParallel = 2, .stages = step == 2 ? 2U : 1U, .zero = 1};
      if (step == 10)
        for (const char *name : {"data", "tensor"}) {
          plan::proto::Axis &axis = *manifest.layout.world.add_axes();
          axis.set_name(name);
          axis.set_size(2);
        }
      manifest.files = {{"rank-00000.safetensors", bytes.size(), hexOf(sha256(std::as_bytes(std::span(bytes))))}};
      writeFile(place + "/manifest.json", manifestText(manifest));
    }
    std::filesystem::create_directory(folder / "global_step12.run.part");
    writeFile(folder / "latest", "global_step10\n");
  }
  std::string file(const std::string &step) { return folder / ("global_step" + step + "/rank-00000.safetensors"); }

  TemporaryFolder folder;
};

TEST_F(Report, ListsByStepAndSaysWhatIsNotWhole) {
  std::filesystem::remove(file("2"));
  const std::string table = runtime::checkpointTable(folder.path().string());
  const size_t two = table.find("\n     2  20"), ten = table.find("\n    10  20"),
               part = table.find("global_step12.run.part: not whole");
  EXPECT_LT(two, ten) << table;
  EXPECT_LT(ten, part) << table;
  EXPECT_NE(part, std::string::npos) << table;
  EXPECT_NE(table.find("4 ranks, data 2, stages 2, ZeRO 1"), std::string::npos) << table;
  EXPECT_NE(table.find("4 ranks, data 2, tensor 2, stages 1, ZeRO 1"), std::string::npos) << table;
  EXPECT_NE(table.find("/global_step2 lacks its file rank-00000.safetensors of SHA-256 "), std::string::npos) << table;
  EXPECT_NE(table.find("  whole\n"), std::string::npos) << table;
  EXPECT_TRUE(table.ends_with("latest: global_step10\n")) << table;
}

TEST_F(Report, VerifiesEveryByte) {
  EXPECT_TRUE(runtime::verifyCheckpoints(folder.path().string()).damages.empty());
  std::string bytes = readFile(file("10"));
  const std::string expected = hexOf(sha256(std::as_bytes(std::span(bytes))));
  bytes[3] = char(bytes[3] ^ 1);
  writeFile(file("10"), bytes);
  const runtime::Verification found = runtime::verifyCheckpoints(folder.path().string());
  ASSERT_EQ(found.damages.size(), 1U);
  EXPECT_EQ(found.damages[0], file("10") + " is damaged: its SHA-256 is " +
                                  hexOf(sha256(std::as_bytes(std::span(bytes)))) + ", its manifest says " + expected);
  EXPECT_NE(found.text.find(file("2") + ": ok\n"), std::string::npos);
  EXPECT_NE(found.text.find(file("10") + ": damaged\n"), std::string::npos);
  writeFile(file("10"), bytes + "x");
  EXPECT_NE(runtime::verifyCheckpoints(folder / "global_step10").damages.at(0).find("bytes, its manifest says"),
            std::string::npos);
}

TEST_F(Report, SaysWhereNobodyCanTell) {
  const std::string path = folder / "global_step2/manifest.json", text = readFile(path);
  writeFile(path, text.substr(0, text.rfind(",\n \"sha256\"")) + "\n}\n");
  const runtime::Verification found = runtime::verifyCheckpoints(folder.path().string());
  EXPECT_NE(found.text.find(folder / "global_step2" + " has no SHA-256 of its own"), std::string::npos) << found.text;
  EXPECT_EQ(found.text.find(folder / "global_step10" + " has no SHA-256"), std::string::npos) << found.text;
}

TEST_F(Report, RefusesWhatIsNoCheckpoint) {
  EXPECT_ERROR(runtime::checkpointTable(folder / "latest"), "is no folder");
  std::filesystem::create_directory(folder / "empty");
  EXPECT_ERROR(runtime::checkpointTable(folder / "empty"), "holds no checkpoints");
  std::filesystem::create_directory(folder / "empty/global_step1");
  EXPECT_ERROR(runtime::verifyCheckpoints(folder / "empty"), "holds no whole checkpoint");
}

TEST(FusedExperts, NamesOfBothFamilies) {
  const auto is = [](const std::string &name, const std::string &tensor, uint64_t part) {
    const auto found = runtime::expertPart(name);
    return found && found->tensor == tensor && found->part == part;
  };
  EXPECT_TRUE(is("model.layers.1.block_sparse_moe.experts.3.w1.weight", "model.layers.1.mlp.experts.gate_up_proj", 6));
  EXPECT_TRUE(is("model.layers.1.block_sparse_moe.experts.3.w3.weight", "model.layers.1.mlp.experts.gate_up_proj", 7));
  EXPECT_TRUE(is("model.layers.1.block_sparse_moe.experts.3.w2.weight", "model.layers.1.mlp.experts.down_proj", 3));
  EXPECT_TRUE(is("a.mlp.experts.0.up_proj.weight", "a.mlp.experts.gate_up_proj", 1));
  EXPECT_FALSE(runtime::expertPart("a.mlp.experts.0.up_proj.bias"));
  EXPECT_FALSE(runtime::expertPart("a.mlp.experts.99999999999999999999.up_proj.weight"));
  EXPECT_EQ(runtime::moduleName("a.block_sparse_moe.gate.weight"), "a.mlp.gate.weight");
  EXPECT_EQ(runtime::moduleName("a.mlp.gate.weight"), "a.mlp.gate.weight");
}

} // namespace
} // namespace ds::test
