//===- SideChannelTest.cpp - what must not end a run, and what must not be lost
#include "runtime/plan/format/PlanFile.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/ShardedPlan.h"
#include "test/unit/runtime/Shell.h"
#include "test/unit/runtime/SmallFileSystem.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <string>
#include <sys/types.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ds::test {
namespace {

/// ShardedPlan on two ranks of one process, for so many steps that its metrics have about 60 KiB.
class SideChannelTest : public testing::Test {
protected:
  SideChannelTest() {
    plan::writePlanFile(plan, shardedPlan(2, 1).plan);
    writeShardedData(data);
  }

  std::string command(const std::string &arguments) const {
    return std::string(DS_RUN_PATH) + " " + plan + " --data " + data + " --steps 400 " + arguments;
  }
  Outcome dsRun(const std::string &arguments) const { return shell(command(arguments)); }
  /// Steps in a metrics file, each line of which is whole.
  static uint64_t lastStep(const std::string &path) {
    uint64_t last = 0;
    for (const std::string &line : readLines(path))
      if (const auto json = nlohmann::json::parse(line); json.contains("step"))
        last = json["step"];
    return last;
  }

  TemporaryFolder folder;
  const std::string plan = folder / "p.dsplan", data = folder / "d";
};

TEST_F(SideChannelTest, AFullDiskUnderMetricsOrTraceIsSaidOnce) {
  const SmallFileSystem disk(folder / "small", "64k");
  if (!disk.mounted())
    GTEST_SKIP() << "this machine does not let us mount a small tmpfs";
  disk.fill(8192);
  const Outcome outcome =
      dsRun("--quiet --metrics " + folder / "small/m" + " --trace " + folder / "small/t" + " --export " + folder / "w");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(std::filesystem::exists(folder / "w"));
  EXPECT_THAT_CONTAINS(outcome.errors, "note: the metrics file " + folder / "small/m" + " cannot be written: No space");
  EXPECT_THAT_CONTAINS(outcome.errors, "note: cannot write " + folder / "small/t");
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 2) << outcome.errors;
  EXPECT_GT(lastStep(folder / "small/m"), 10u);
}

TEST_F(SideChannelTest, SpaceForAnExportIsLookedAtBeforeTheFirstStep) {
  const SmallFileSystem disk(folder / "small", "64k");
  if (!disk.mounted())
    GTEST_SKIP() << "this machine does not let us mount a small tmpfs";
  disk.fill(4096);
  expectError(dsRun("--metrics " + folder / "m" + " --export " + folder / "small/w"), 1,
              "bytes, but " + folder / "small");
  EXPECT_FALSE(std::filesystem::exists(folder / "m"));
  expectError(shell("ulimit -f 1; " + command("--export " + folder / "w")), 1, "files may have only 512 here");
}

/// The disk fills up while the run trains: the metrics fill it.
TEST_F(SideChannelTest, AnExportThatFailsIsWrittenElsewhere) {
  const SmallFileSystem disk(folder / "small", "64k");
  if (!disk.mounted())
    GTEST_SKIP() << "this machine does not let us mount a small tmpfs";
  ASSERT_EQ(dsRun("--export " + folder / "expected").code, 0);
  std::filesystem::create_directory(folder / "here");
  const Outcome outcome = shell("cd " + folder / "here" + " && " +
                                command("--quiet --metrics " + folder / "small/m" + " --export " + folder / "small/w"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT_CONTAINS(outcome.errors, "error: cannot write " + folder / "small/w");
  EXPECT_THAT_CONTAINS(outcome.errors, "; the weights are in " + folder / "here/rescued-");
  const size_t at = outcome.errors.find(folder / "here/rescued-");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(readFile(outcome.errors.substr(at, outcome.errors.find(" instead") - at)), readFile(folder / "expected"));
  EXPECT_FALSE(std::filesystem::exists(folder / "small/w"));
}

TEST_F(SideChannelTest, ALimitOnFilesIsSaidOnce) {
  const Outcome outcome =
      shell("ulimit -f 40; " + command("--quiet --metrics " + folder / "m" + " --export " + folder / "w"));
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT_CONTAINS(outcome.errors, "cannot be written: File too large");
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
  EXPECT_TRUE(std::filesystem::exists(folder / "w"));
  EXPECT_GT(lastStep(folder / "m"), 10u);
}

TEST_F(SideChannelTest, ClosedStreamsEndNothingAndGetIntoNoFile) {
  const std::string arguments = "--verbose --metrics " + folder / "m" + " --export " + folder / "w";
  for (const char *closing : {" 2>&-", " >&- 2>&-", " <&- >&- 2>&-"}) {
    std::filesystem::remove(folder / "w");
    EXPECT_EQ(shell("{ " + command(arguments) + closing + "; }").code, 0) << closing;
    EXPECT_EQ(lastStep(folder / "m"), 400u) << closing; // no line of it is ours to others
    EXPECT_TRUE(std::filesystem::exists(folder / "w")) << closing;
  }
  // A reader of its messages that is gone.
  const Outcome pipe = shell("bash -c 'set -o pipefail; " + command(arguments) + " 2>&1 | true'");
  EXPECT_EQ(pipe.code, 0) << pipe.errors;
}

TEST_F(SideChannelTest, AHangupIsSaidOnce) {
  const std::string line = std::string(DS_RUN_PATH) + " " + plan + " --quiet --data " + data +
                           " --steps 1000000000 --metrics " + folder / "m" + " 2>" + folder / "err";
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGHUP, SIG_DFL); // tests under nohup inherit that it is ignored, and ds-run would rightly say nothing
    ::execl("/bin/sh", "sh", "-c", ("exec " + line).c_str(), static_cast<char *>(nullptr));
    ::_exit(127);
  }
  const auto size = [&] {
    return std::filesystem::exists(folder / "m") ? std::filesystem::file_size(folder / "m") : 0;
  };
  const auto await = [&](auto done) {
    for (int i = 0; i < 2000 && !done(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  await([&] { return size() > 0; });
  ::kill(child, SIGHUP);
  const auto said = [&] { return readFile(folder / "err"); };
  await([&] { return !said().empty(); });
  ::kill(child, SIGHUP);
  const uint64_t then = size();
  await([&] { return size() > then; });
  EXPECT_GT(size(), then);
  EXPECT_EQ(said(), "note: SIGHUP came, as when a terminal is closed; the run goes on, SIGTERM would end it\n");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(SideChannelTest, AnOlderRunsMetricsAreKept) {
  const std::string arguments = "--quiet --metrics " + folder / "m";
  EXPECT_EQ(dsRun(arguments).errors, "");
  const std::string first = readFile(folder / "m");
  const Outcome second = dsRun(arguments);
  EXPECT_EQ(second.code, 0);
  EXPECT_THAT_CONTAINS(second.errors,
                       "note: the metrics file of an older run, " + folder / "m" + ", is " + folder / "m.1");
  EXPECT_EQ(readFile(folder / "m.1"), first);
  EXPECT_EQ(lastStep(folder / "m"), 400u);
  EXPECT_EQ(dsRun(arguments).code, 0);
  EXPECT_EQ(readFile(folder / "m.1"), first);
  EXPECT_TRUE(std::filesystem::exists(folder / "m.2"));
  EXPECT_EQ(dsRun("--quiet --metrics /dev/null").errors, "");
}

TEST_F(SideChannelTest, ResultsOverwriteNothingThatTheRunReads) {
  const std::string before = readFile(data);
  std::filesystem::create_symlink(data, folder / "link");
  std::filesystem::create_hard_link(plan, folder / "hard");
  for (const char *flag : {"--export ", "--metrics ", "--trace "}) {
    expectError(dsRun(flag + data), 1, "would overwrite the data file " + data);
    expectError(dsRun(flag + folder / "link"), 1, "would overwrite the data file " + data);
    expectError(dsRun(flag + folder / "./p.dsplan"), 1, "would overwrite the plan " + plan);
    expectError(dsRun(flag + folder / "hard"), 1, "would overwrite the plan " + plan);
  }
  expectError(dsRun("--export " + folder / "x" + " --metrics " + folder / "./x"), 1, "would overwrite --export");
  EXPECT_EQ(readFile(data), before);
  // Weights that were read before may be replaced.
  ASSERT_EQ(dsRun("--export " + folder / "w").code, 0);
  EXPECT_EQ(dsRun("--weights " + folder / "w" + " --export " + folder / "w").code, 0);
  expectError(dsRun("--weights " + folder / "w" + " --metrics " + folder / "w"), 1, "would overwrite the weights");
}

/// mpirun -n 2 ds-run PLAN -n 2: whole runs, of which one writes the file.
TEST_F(SideChannelTest, WholeRunsUnderALauncherDoNotShareAFile) {
  const std::string run = "OMPI_COMM_WORLD_SIZE=2 " + std::string(DS_RUN_PATH) + " " + plan + " -n 2 --data " + data +
                          " --metrics " + folder / "m";
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", ("exec env " + run + " --quiet --steps 1000000000").c_str(),
            static_cast<char *>(nullptr));
    ::_exit(127);
  }
  for (int i = 0; i < 4000 && (!std::filesystem::exists(folder / "m") || std::filesystem::file_size(folder / "m") == 0);
       ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const Outcome second = shell(run + " --steps 3");
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT_CONTAINS(second.errors, "is being written by another run; give each run a file of its own");
  EXPECT_THAT_CONTAINS(second.errors, "note: a launcher started 2 processes, and -n 2 makes each of them a whole run");
  ::kill(child, SIGTERM);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "m.1"));
}

TEST_F(SideChannelTest, NamesItsExitCodes) {
  std::string bytes = readFile(data);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(&bytes[bytes.size() - 480], &nan, sizeof nan);
  writeFile(data, bytes);
  const std::string results = "--quiet --metrics " + folder / "m" + " --export " + folder / "w";
  expectError(dsRun(results), 3, "in step 1 the loss is NaN on rank 0");
  EXPECT_FALSE(std::filesystem::exists(folder / "w"));
  EXPECT_EQ(dsRun(results + " --on-nonfinite skip").code, 0);
  expectError(dsRun(results + " --on-nonfinite skips"), 2, "--on-nonfinite");
}

} // namespace
} // namespace ds::test
