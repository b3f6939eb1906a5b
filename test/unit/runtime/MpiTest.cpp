//===- MpiTest.cpp - ds-run under mpirun ----------------------------------===//
#include "core/DType.h"
#include "runtime/executor/Storage.h"
#include "runtime/plan/format/PlanFile.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PipelinePlan.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/ShardedPlan.h"
#include "test/unit/runtime/Shell.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace ds::test {
namespace {

/// Part of a line, with all that the ranks wrote there.
std::vector<std::string> linesWith(const std::string &text, const std::string &part) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (line.find(part) != std::string::npos)
      lines.push_back(line);
  return lines;
}

class MpiTest : public testing::Test {
protected:
  void SetUp() override {
    if (shell("mpirun --version").code != 0)
      GTEST_SKIP() << "there is no mpirun";
    writeShardedData(data);
  }

  /// mpirun -n `processes` ds-run PLAN ...; `prefix` goes before ds-run.
  Outcome mpirun(int processes, const std::string &arguments, const std::string &prefix = "") const {
    return shell("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 100 mpirun --oversubscribe -n " +
                 std::to_string(processes) + " " + prefix + " " + DS_RUN_PATH + " " + plan +
                 " --quiet --check-data 0 --data " + data + " " + arguments);
  }
  void write(const PlanBuilder &builder) { plan::writePlanFile(plan, builder.plan); }
  nlohmann::json metricsLine(const std::string &path, size_t line) const {
    return nlohmann::json::parse(readLines(path).at(line));
  }

  TemporaryFolder folder;
  const std::string plan = folder / "p.dsplan", data = folder / "d";
};

TEST_F(MpiTest, GivesTheBitsOfThreadsOfOneProcess) {
  for (const uint32_t ranks : {2, 4}) {
    write(shardedPlan(ranks, 3));
    const auto results = [&](const std::string &name) {
      return "--steps 5 --seed 3 --metrics " + folder / (name + ".jsonl") + " --export " +
             folder / (name + ".weights") + " --trace " + folder / (name + ".trace");
    };
    const Outcome threads =
        shell(std::string(DS_RUN_PATH) + " " + plan + " --quiet --data " + data + " " + results("threads"));
    ASSERT_EQ(threads.code, 0) << threads.errors;
    const Outcome processes = mpirun(int(ranks), results("processes"));
    ASSERT_EQ(processes.code, 0) << processes.errors;
    EXPECT_EQ(readFile(folder / "threads.weights"), readFile(folder / "processes.weights"));
    for (size_t step = 0; step < 5; ++step)
      EXPECT_EQ(metricsLine(folder / "threads.jsonl", step)["loss"],
                metricsLine(folder / "processes.jsonl", step)["loss"]);
    const auto here = metricsLine(folder / "threads.jsonl", 5)["summary"]["ranks"];
    const auto there = metricsLine(folder / "processes.jsonl", 5)["summary"]["ranks"];
    ASSERT_EQ(there.size(), ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(there[rank]["rank"], rank);
      EXPECT_EQ(there[rank]["device_bytes"], here[rank]["device_bytes"]);
      EXPECT_EQ(there[rank]["wire_bytes_per_step"], here[rank]["wire_bytes_per_step"]);
    }
    const auto trace = nlohmann::json::parse(readFile(folder / "processes.trace"));
    for (uint32_t rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(linesWith(readFile(folder / "processes.trace"),
                          "\"reduce_scatter\", \"cat\": \"collective\", \"pid\": " + std::to_string(rank) + ",")
                    .size(),
                15u);
  }
}

TEST_F(MpiTest, GivesTheBitsOfThreadsForAPipelineToo) {
  for (const uint32_t dataRanks : {1, 2}) {
    write(pipelinePlan(4, dataRanks));
    const auto results = [&](const std::string &name) {
      return "--steps 5 --seed 3 --metrics " + folder / (name + ".jsonl") + " --export " + folder / (name + ".weights");
    };
    const Outcome threads =
        shell(std::string(DS_RUN_PATH) + " " + plan + " --quiet --data " + data + " " + results("threads"));
    ASSERT_EQ(threads.code, 0) << threads.errors;
    const Outcome processes = mpirun(int(2 * dataRanks), results("processes"));
    ASSERT_EQ(processes.code, 0) << processes.errors;
    EXPECT_EQ(readFile(folder / "threads.weights"), readFile(folder / "processes.weights"));
    for (size_t step = 0; step < 5; ++step)
      EXPECT_EQ(metricsLine(folder / "threads.jsonl", step)["loss"],
                metricsLine(folder / "processes.jsonl", step)["loss"]);
    const auto here = metricsLine(folder / "threads.jsonl", 5)["summary"]["ranks"];
    const auto there = metricsLine(folder / "processes.jsonl", 5)["summary"]["ranks"];
    for (uint32_t rank = 0; rank < 2 * dataRanks; ++rank)
      EXPECT_EQ(there[rank]["wire_bytes_per_step"], here[rank]["wire_bytes_per_step"]);
  }
}

/// What a wrapper around MPI_Isend has seen is what ds-run says.
TEST_F(MpiTest, SendsTheBytesThatItCounts) {
  for (const PlanBuilder &builder : {shardedPlan(2, 3), pipelinePlan(3)}) {
    write(builder);
    const Outcome outcome = mpirun(2, "--steps 4 --metrics " + folder / "m",
                                   "-x LD_PRELOAD=" DS_SEND_COUNTER_PATH " -x DS_SEND_COUNTER=" + folder / "sent");
    ASSERT_EQ(outcome.code, 0) << outcome.errors;
    for (const uint32_t rank : {0, 1}) {
      uint64_t counted = 0;
      const auto wire = metricsLine(folder / "m", 4)["summary"]["ranks"][rank]["wire_bytes_per_step"];
      for (const auto &[kind, bytes] : wire.items())
        counted += kind == "recv" ? 0 : bytes.get<uint64_t>();
      EXPECT_EQ(readFile(folder / ("sent." + std::to_string(rank))), std::to_string(4 * counted));
    }
  }
}

TEST_F(MpiTest, ARankThatFailsStopsAllWithItsText) {
  write(failingShardedPlan(3, 2));
  writeBadShardedData(data);
  const Outcome outcome = mpirun(3, "--export " + folder / "w");
  EXPECT_EQ(outcome.code, 1) << outcome.errors;
  EXPECT_EQ(linesWith(outcome.errors, "error: the data's sample 1 has value 11 at element 0 of input x").size(), 3u)
      << outcome.errors;
  EXPECT_FALSE(std::filesystem::exists(folder / "w"));
}

TEST_F(MpiTest, RefusesRanksThatDoNotBelongTogether) {
  write(shardedPlan(3, 2));
  const Outcome number = mpirun(2, "");
  EXPECT_NE(number.code, 0);
  EXPECT_THAT_CONTAINS(number.errors,
                       "error: mpirun started 2 processes, each to be one rank, but plan " + plan + " is for 3 ranks");
  // Rank 1 finds another plan under the same name.
  write(shardedPlan(2, 2));
  plan::writePlanFile(folder / "other.dsplan", shardedPlan(2, 3).plan);
  writeFile(folder / "either.sh", "#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 1 ] && set -- \"$1\" " +
                                      folder / "other.dsplan" + " --data " + data + "\nexec \"$@\"\n");
  const Outcome files = mpirun(2, "", "sh " + folder / "either.sh");
  EXPECT_NE(files.code, 0);
  EXPECT_THAT_CONTAINS(files.errors, "error: the plan file is not the same on every rank: rank 0 differs from 1");
  writeFile(folder / "either.sh", "#!/bin/sh\nexec \"$@\" --seed $OMPI_COMM_WORLD_RANK\n");
  EXPECT_THAT_CONTAINS(mpirun(2, "", "sh " + folder / "either.sh").errors,
                       "is not the same on every rank: rank 0 differs from 1");
}

/// Rank 1 gets another file, program or instruction set by the same command line.
TEST_F(MpiTest, RefusesDifferentInputsAndSoftware) {
  write(shardedPlan(2, 2));
  const std::string export_ = "--steps 2 --export " + folder / "w";
  ASSERT_EQ(mpirun(2, export_).code, 0);
  const auto onRank1 = [&](const std::string &commands, const std::string &arguments) {
    writeFile(folder / "either.sh",
              "#!/bin/sh\nif [ $OMPI_COMM_WORLD_RANK = 1 ]; then " + commands + "; fi\nexec \"$@\"\n");
    const Outcome outcome = mpirun(2, arguments, "sh " + folder / "either.sh");
    EXPECT_NE(outcome.code, 0);
    return outcome.errors;
  };
  const std::string differs = " is not the same on every rank: rank 0 differs from 1";
  for (const char *name : {"0", "1"})
    std::filesystem::create_directory(folder / name);
  std::string other = readFile(data);
  other[other.size() - 1] = char(other[other.size() - 1] ^ 1);
  writeFile(folder / "0/d", readFile(data));
  writeFile(folder / "1/d", other);
  writeFile(folder / "0/w", readFile(folder / "w"));
  other = readFile(folder / "w");
  other[other.size() - 1] = char(other[other.size() - 1] ^ 1);
  writeFile(folder / "1/w", other);
  const std::string away = "cd " + folder / "1";
  std::filesystem::current_path(folder / "0");
  EXPECT_THAT_CONTAINS(onRank1(away, "--weights w"), "error: what --weights names" + differs);
  EXPECT_THAT_CONTAINS(onRank1("shift 5; set -- " DS_RUN_PATH " " + plan + " --data " + folder / "1/d", ""),
                       "error: what --data names" + differs);
  std::filesystem::current_path("/");
  EXPECT_THAT_CONTAINS(onRank1("export DS_CPU_ISA=baseline", ""), "error: the instruction set that kernels use");
  std::filesystem::create_directories(folder / "build/bin");
  std::filesystem::copy_file(DS_RUN_PATH, folder / "build/bin/ds-run");
  std::filesystem::create_directory_symlink(std::filesystem::path(DS_RUN_PATH).parent_path().parent_path() / "lib",
                                            folder / "build/lib");
  const std::string another = "shift; set -- " + folder / "build/bin/ds-run" + " \"$@\"";
  std::ofstream(folder / "build/bin/ds-run", std::ios::app | std::ios::binary) << "another build";
  EXPECT_THAT_CONTAINS(onRank1(another, ""), "error: the program ds-run, its version or build," + differs);
}

/// Each rank alone fits; together they do not.
TEST_F(MpiTest, RanksOfOneHostCountEachOthersMemory) {
  PlanBuilder b = shardedPlan(2, 2);
  const auto bytes = int64_t(runtime::availableMemory() * 6 / 10);
  b.tensor("ballast", DType::U8, {bytes}, proto::Buffer::STEP); // that no command touches
  write(b);
  const Outcome outcome = mpirun(2, "--steps 1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT_CONTAINS(outcome.errors, "error: the plan's arenas of the ranks of this host up to 1 need ");
}

/// Both ranks end at the same step with the same sentence; a step that is skipped is undone on both.
TEST_F(MpiTest, ActsAlikeWhereALossIsNotFinite) {
  write(shardedPlan(2, 2));
  std::string bytes = readFile(data);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(&bytes[bytes.size() - 480 + size_t(9) * 5 * 4], &nan, sizeof nan); // step 3: samples 8 to 11
  writeFile(data, bytes);
  const Outcome stopped = mpirun(2, "--steps 6 --export " + folder / "w");
  EXPECT_EQ(stopped.code, 3);
  EXPECT_EQ(linesWith(stopped.errors, "error: in step 3 the loss is NaN on rank 0").size(), 2u) << stopped.errors;
  EXPECT_FALSE(std::filesystem::exists(folder / "w"));
  const std::string skip = "--steps 6 --on-nonfinite skip --export ";
  EXPECT_EQ(mpirun(2, skip + folder / "w").code, 0);
  EXPECT_EQ(shell(std::string(DS_RUN_PATH) + " " + plan + " --data " + data + " " + skip + folder / "threads").code, 0);
  EXPECT_EQ(readFile(folder / "w"), readFile(folder / "threads"));
}

/// A checkpoint of an older version resumes, and its note stands there once.
TEST_F(MpiTest, OneRankSaysTheNotes) {
  write(shardedPlan(2, 2));
  EXPECT_EQ(mpirun(2, "--steps 1 --save " + folder / "s").code, 0);
  const std::string path = folder / "s/global_step1/manifest.json", text = readFile(path);
  writeFile(path, text.substr(0, text.rfind(",\n \"sha256\"")) + "\n}\n");
  const Outcome outcome = mpirun(2, "--steps 2 --resume " + folder / "s");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(linesWith(outcome.errors, "has no SHA-256 of its own").size(), 1u) << outcome.errors;
}

TEST_F(MpiTest, SaysThatMpiIsMissing) {
  write(shardedPlan(2, 2));
  std::filesystem::create_directory(folder / "bin");
  std::filesystem::copy_file(DS_RUN_PATH, folder / "bin/ds-run"); // no ../lib there
  const Outcome outcome = shell("OMPI_COMM_WORLD_SIZE=2 " + folder / "bin/ds-run" + " " + plan + " --data " + data);
  expectError(outcome, 1, "MPI, by which they would talk, cannot be loaded");
  // A library that cannot be loaded, as one whose MPI is gone.
  std::filesystem::create_directory(folder / "lib");
  writeFile(folder / "lib/libDSCommMpi.so", "not a library");
  expectError(shell("OMPI_COMM_WORLD_SIZE=2 " + folder / "bin/ds-run" + " " + plan + " --data " + data), 1,
              "MPI, by which they would talk, cannot be loaded");
}

/// Sends signals to ranks in the middle of a run without end.
class MpiSignalTest : public MpiTest {
protected:
  void send(int signal, int rank) const {
    ::kill(std::stoi(readFile(folder / ("pid." + std::to_string(rank)))), signal);
  }

  /// To rank 1.
  Outcome runUntil(int signal, const PlanBuilder &builder, const std::string &arguments, int processes = 3) {
    return runUntil([&] { send(signal, 1); }, builder, arguments, processes);
  }
  Outcome runUntil(const std::function<void()> &disturb, const PlanBuilder &builder, const std::string &arguments,
                   int processes) {
    write(builder);
    writeFile(folder / "pid.sh", "#!/bin/sh\necho $$ > " + folder / "pid." + "$OMPI_COMM_WORLD_RANK\nexec \"$@\"\n");
    std::thread sender([&] {
      const auto lines = [&] { return std::filesystem::exists(folder / "m") ? readLines(folder / "m").size() : 0; };
      while (lines() < 20)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      sent_ = std::chrono::steady_clock::now();
      disturb();
    });
    const Outcome outcome =
        mpirun(processes, "--steps 1000000000 --metrics " + folder / "m" + " --export " + folder / "w " + arguments,
               "sh " + folder / "pid.sh");
    sender.join();
    lasted_ = std::chrono::steady_clock::now() - sent_;
    return outcome;
  }

  std::chrono::steady_clock::time_point sent_;
  std::chrono::duration<double> lasted_{}; ///< from the signal until the job had ended
};

/// kill -9: the job ends, the others tell what they were in, nothing is left half written.
TEST_F(MpiSignalTest, EndsWhenARankIsKilled) {
  const Outcome outcome = runUntil(SIGKILL, shardedPlan(3, 2), "");
  EXPECT_NE(outcome.code, 0);
  EXPECT_LT(lasted_.count(), 10) << "seconds; mpirun itself takes less than one";
  for (const char *rank : {"rank 0", "rank 2"}) {
    const auto notes = linesWith(outcome.errors, std::string("note: ") + rank + " was asked to end; it last entered ");
    EXPECT_EQ(notes.size(), 1u) << outcome.errors;
    EXPECT_EQ(linesWith(outcome.errors, rank).size() + linesWith(outcome.errors, "error:").size(), 1u)
        << outcome.errors;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "w"));
  for (const std::string &line : readLines(folder / "m"))
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
}

/// The second of two stages is killed while the first waits for its messages.
TEST_F(MpiSignalTest, EndsWhenAStageIsKilled) {
  const Outcome outcome = runUntil(SIGKILL, pipelinePlan(4), "", 2);
  EXPECT_NE(outcome.code, 0);
  EXPECT_LT(lasted_.count(), 10) << "seconds; mpirun itself takes less than one";
  EXPECT_EQ(linesWith(outcome.errors, "note: rank 0 was asked to end; it last entered ").size(), 1u) << outcome.errors;
  EXPECT_FALSE(std::filesystem::exists(folder / "w"));
}

/// Ranks that have nothing to say to each other within a step.
PlanBuilder planWithoutCollectives(uint32_t ranks) {
  PlanBuilder b(1, 1);
  b.ranks(ranks);
  const uint32_t compute = b.queue("compute"), forward = b.routine("forward"), step = b.program("step");
  const auto x = b.tensor("x", DType::F32, {1, 5}, proto::Buffer::CALL);
  b.feed(forward, compute, b.input("x", DType::F32, {1, 5}), x);
  b.call(step, forward, 0);
  b.life(x, step, forward, 0, forward, 0);
  return b;
}

/// How many seconds ago the first error says that a rank was heard of.
double heardSecondsAgo(const std::string &errors, uint32_t rank) {
  const std::string before = "; rank " + std::to_string(rank) + " was last heard of ";
  const size_t at = errors.find(before);
  EXPECT_NE(at, std::string::npos) << errors;
  return at == std::string::npos ? -1 : std::stod(errors.substr(at + before.size()));
}

/// The limit is longer than a busy machine keeps a rank from running.
void expectNamesRank1(const Outcome &outcome) {
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 124) << "it had to be ended";
  EXPECT_GE(linesWith(outcome.errors, "ranks 1 are missing").size(), 1u) << outcome.errors;
  EXPECT_GE(linesWith(outcome.errors, "waited 3 s in ").size(), 1u) << outcome.errors;
  EXPECT_GE(heardSecondsAgo(outcome.errors, 1), 2.9) << "it was stopped for 3 s at least";
}

TEST_F(MpiSignalTest, NamesARankThatStandsStill) {
  expectNamesRank1(runUntil(SIGSTOP, shardedPlan(3, 2), "--collective-timeout 3"));
}

TEST_F(MpiSignalTest, NamesAStageThatStandsStill) {
  const Outcome outcome = runUntil(SIGSTOP, pipelinePlan(4), "--collective-timeout 3", 2);
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 124) << "it had to be ended";
  EXPECT_GE(linesWith(outcome.errors, "rank 0 waited 3 s in ").size(), 1u) << outcome.errors;
}

TEST_F(MpiSignalTest, NamesARankThatStandsStillBetweenSteps) {
  expectNamesRank1(runUntil(SIGSTOP, planWithoutCollectives(3), "--collective-timeout 3"));
}

/// As Ctrl-Z does: each of the two may wait for the other at that moment.
TEST_F(MpiSignalTest, AJobThatWasStoppedGoesOn) {
  const auto lines = [&] { return readLines(folder / "m").size(); };
  size_t before = 0, after = 0;
  const auto disturb = [&] {
    for (const int rank : {0, 1})
      send(SIGSTOP, rank);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    before = lines();
    for (const int rank : {0, 1})
      send(SIGCONT, rank);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    after = lines();
    send(SIGTERM, 1);
  };
  const Outcome outcome = runUntil(disturb, shardedPlan(2, 2), "--collective-timeout 1", 2);
  EXPECT_GT(after, before);
  EXPECT_EQ(linesWith(outcome.errors, "waited").size(), 0u) << outcome.errors;
  EXPECT_GE(linesWith(outcome.errors, "stopped by a signal after step").size(), 1u) << outcome.errors;
}

class MpiSlowFileTest : public MpiTest {
protected:
  /// A run in which reads and writes of a file last for ever on one rank.
  Outcome runWithDeadFile(uint32_t rank, const std::string &file, const PlanBuilder &builder, int processes,
                          const std::string &arguments) {
    write(builder);
    writeFile(folder / "slow.sh",
              "#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = " + std::to_string(rank) +
                  " ] && export LD_PRELOAD=" DS_SLOW_FILES_PATH " DS_SLOW_MS=1000000 DS_SLOW_FILE=" + file +
                  "\nexec \"$@\"\n");
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = mpirun(processes, arguments + " --collective-timeout 1", "sh " + folder / "slow.sh");
    lasted_ = std::chrono::steady_clock::now() - begin;
    return outcome;
  }
  std::chrono::duration<double> lasted_{};
};

/// Rank 0 cannot write what rank 1 holds.
TEST_F(MpiSlowFileTest, EndsAnExportThatStandsStill) {
  const Outcome outcome =
      runWithDeadFile(0, "slow.out", pipelinePlan(4), 2, "--steps 2 --export " + folder / "slow.out");
  EXPECT_NE(outcome.code, 0);
  EXPECT_LT(lasted_.count(), 60) << "seconds";
  EXPECT_THAT_CONTAINS(outcome.errors, "error: rank 1 waited 4 s for rank 0 to take bytes between steps");
  EXPECT_LT(heardSecondsAgo(outcome.errors, 0), 3) << "it runs, but does not come";
}

/// A rank that reads its plan for ever does not even come to MPI.
TEST_F(MpiSlowFileTest, DoesNotWaitForEverForARankThatDoesNotCome) {
  const Outcome outcome = runWithDeadFile(1, "p.dsplan", shardedPlan(3, 2), 3, "--steps 2");
  EXPECT_NE(outcome.code, 0);
  EXPECT_LT(lasted_.count(), 60) << "seconds";
  EXPECT_THAT_CONTAINS(outcome.errors,
                       "error: not all processes that the launcher has started came to MPI within 21 s");
}

/// Nor is one waited for that stands still while it loads.
TEST_F(MpiSlowFileTest, NamesARankThatDoesNotEndLoading) {
  const Outcome outcome = runWithDeadFile(1, data, shardedPlan(3, 2), 3, "--steps 2");
  EXPECT_NE(outcome.code, 0);
  EXPECT_LT(lasted_.count(), 60) << "seconds";
  EXPECT_THAT_CONTAINS(outcome.errors, "ranks 1 are missing");
}

} // namespace
} // namespace ds::test
