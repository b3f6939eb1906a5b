//===- CheckpointFolderTest.cpp - which checkpoints there are, and stay ---===//
#include "runtime/checkpoint/CheckpointFolder.h"

#include "test/unit/runtime/Files.h"

#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace ds::test {
namespace {

using namespace runtime;
using Steps = std::vector<uint64_t>;

class CheckpointFolder : public testing::Test {
protected:
  void make(const std::string &name, const std::string &manifest = "{}") {
    std::filesystem::create_directory(folder / name);
    if (!manifest.empty())
      writeFile(folder / name + "/manifest.json", manifest);
  }

  TemporaryFolder folder;
};

TEST_F(CheckpointFolder, OnlyWholeOnesCount) {
  for (const char *name : {"global_step20", "global_step3", "global_step007", "global_step", "global_step4x", "step5"})
    make(name);
  make("global_step9", "");
  make("global_step8.0123.part");
  EXPECT_EQ(checkpointsIn(folder.path()), (Steps{3, 20}));
  EXPECT_EQ(checkpointsIn(folder / "none"), Steps{});
}

TEST_F(CheckpointFolder, FindsTheOneThatIsMeant) {
  EXPECT_EQ(findCheckpoint(folder.path(), ""), std::nullopt);
  make("global_step3");
  make("global_step20");
  EXPECT_EQ(findCheckpoint(folder.path(), ""), folder / "global_step20");
  writeFile(folder / "latest", "global_step3\n");
  EXPECT_EQ(findCheckpoint(folder.path(), ""), folder / "global_step3");
  EXPECT_EQ(findCheckpoint(folder.path(), "global_step20"), folder / "global_step20");
  EXPECT_EQ(findCheckpoint(folder / "global_step20", ""), folder / "global_step20");
  writeFile(folder / "latest", "global_step5\n"); // which was removed
  EXPECT_EQ(findCheckpoint(folder.path(), ""), folder / "global_step20");
  EXPECT_ERROR(findCheckpoint(folder.path(), "global_step4"), "has no checkpoint global_step4");
}

TEST_F(CheckpointFolder, RefusesALatestThatNamesNoneOfThem) {
  make("global_step3");
  make("other");
  for (const char *text : {"", "../evil", "other", "global_step3/../other", "global_step03", "\x01\xff", "3"}) {
    writeFile(folder / "latest", text);
    EXPECT_ERROR(findCheckpoint(folder.path(), ""),
                 folder / "latest" + " does not hold the name of a checkpoint of its folder (global_stepN)");
  }
  EXPECT_EQ(findCheckpoint(folder.path(), "global_step3"), folder / "global_step3");
}

TEST_F(CheckpointFolder, KeepsTheNewest) {
  for (const uint64_t step : {2, 4, 10, 12, 20})
    make(checkpointName(step));
  removeOlder(folder.path(), 20, 3);
  EXPECT_EQ(checkpointsIn(folder.path()), (Steps{10, 12, 20}));
  removeOlder(folder.path(), 20, 9);
  EXPECT_EQ(checkpointsIn(folder.path()), (Steps{10, 12, 20}));
  removeOlder(folder.path(), 12, 2); // 20 is of a run that was given up
  EXPECT_EQ(checkpointsIn(folder.path()), (Steps{10, 12}));
  removeOlder(folder.path(), 10, 1);
  EXPECT_EQ(checkpointsIn(folder.path()), Steps{10});
}

TEST_F(CheckpointFolder, PublishesInPlaceOfAnOlder) {
  make("global_step3", "old");
  make("global_step3.run.part", "new");
  publishCheckpoint(folder.path(), folder / "global_step3.run.part", 3);
  EXPECT_EQ(readFile(folder / "global_step3/manifest.json"), "new");
  EXPECT_EQ(readFile(folder / "latest"), "global_step3\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "global_step3.run.part"));
}

TEST_F(CheckpointFolder, RemovesWhatKilledRunsLeave) {
  make("global_step3");
  make("global_step4.run.part");
  make("mine.part");
  removeUnfinished(folder.path());
  EXPECT_TRUE(std::filesystem::exists(folder / "global_step3"));
  EXPECT_TRUE(std::filesystem::exists(folder / "mine.part"));
  EXPECT_FALSE(std::filesystem::exists(folder / "global_step4.run.part"));
}

TEST_F(CheckpointFolder, OneRunWritesAtATime) {
  std::optional<FolderLock> first(folder.path());
  EXPECT_ERROR(FolderLock(folder.path()), "is being written by another run");
  first.reset();
  const FolderLock second(folder.path());
}

TEST_F(CheckpointFolder, MakesFoldersAndSaysWhyNot) {
  makeFolder(folder / "a/b/c");
  makeFolder(folder / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  writeFile(folder / "file", "");
  EXPECT_ERROR(makeFolder(folder / "file"), "cannot make folder " + folder / "file" + ": File exists");
  EXPECT_ERROR(makeFolder(folder / "file/below"), "cannot make folder " + folder / "file/below" + ": Not a directory");
}

} // namespace
} // namespace ds::test
