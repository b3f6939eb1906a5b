//===- FlightTest.cpp - rings of commands, and the files made of them -----===//
#include "core/Crc32c.h"
#include "core/Error.h"
#include "runtime/device/CommandRing.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/flight/FlightRecorder.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/postmortem/FlightTimeline.h"
#include "runtime/postmortem/Postmortem.h"
#include "runtime/postmortem/Records.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/ShardedPlan.h"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <sys/types.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace ds::test {
namespace {

using runtime::CommandEntry;
using runtime::CommandRing;
using runtime::CommandState;
using runtime::FlightFile;

TEST(CommandRing, TellsWhereACommandStands) {
  runtime::RunMark run;
  run.step = 11;
  CommandRing ring(run);
  runtime::Entrances entrances = 4;
  ring.next(7, 2);
  ring.waits(1);
  ASSERT_EQ(ring.entries().size(), 1u);
  EXPECT_EQ(ring.entries()[0].state, CommandState::Waiting);
  EXPECT_EQ(ring.entries()[0].wait, 1u);
  ring.begins(&entrances);
  EXPECT_EQ(ring.entries()[0].state, CommandState::Running);
  ring.ends();
  const CommandEntry entry = ring.entries()[0];
  EXPECT_EQ(entry.state, CommandState::Done);
  EXPECT_EQ(entry.step, 11u);
  EXPECT_EQ(entry.command, 7u);
  EXPECT_EQ(entry.call, 2u);
  EXPECT_EQ(entry.entrance, 5u);
  EXPECT_EQ(entrances, 5u);
  EXPECT_GE(entry.endMs, entry.beginMs);
}

TEST(CommandRing, KeepsTheLastCommands) {
  runtime::RunMark run;
  CommandRing ring(run);
  for (uint32_t i = 0; i < 3 * CommandRing::capacity; ++i) {
    ring.next(i, 0);
    ring.begins(nullptr);
    ring.ends();
  }
  const std::vector<CommandEntry> entries = ring.entries();
  ASSERT_GE(entries.size(), CommandRing::capacity - 1);
  EXPECT_EQ(entries.back().command, 3 * CommandRing::capacity - 1);
  for (size_t i = 1; i < entries.size(); ++i)
    EXPECT_EQ(entries[i].command, entries[i - 1].command + 1);
}

FlightFile sample(uint32_t rank, uint32_t plan) {
  FlightFile file{.rank = rank, .ranks = 3, .plan = plan, .run = "a", .host = "h\"\xff", .process = 5};
  file.reason = "failure";
  file.error = "rank 0 waited";
  file.writtenMs = 100000;
  file.stages = {{.state = runtime::HostState::Queues, .number = 8, .sinceMs = 90000, .work = "step 3"}};
  file.stills = {{.ms = 1500, .untilMs = 70000}};
  return file;
}

TEST(FlightFile, ReadsWhatItHasWritten) {
  FlightFile file = sample(2, 77);
  file.counts = {{1, runtime::EntranceCount::Kind::Collective, 3, 9, {{1, 2, 3}}}};
  file.queues = {{}, {{.step = 2, .entrance = 8, .command = 4, .state = CommandState::Running, .waitMs = 5}}};
  const FlightFile read = FlightFile::parse(file.text());
  EXPECT_EQ(read.text(), FlightFile::parse(read.text()).text());
  EXPECT_EQ(read.rank, 2u);
  EXPECT_EQ(read.plan, 77u);
  EXPECT_EQ(read.counts[0].entrances, 9u);
  EXPECT_EQ(read.counts[0].peers[0].received, 3u);
  ASSERT_EQ(read.queues.size(), 2u);
  EXPECT_EQ(read.queues[1][0].entrance, 8u);
  EXPECT_EQ(read.queues[1][0].state, CommandState::Running);
}

/// Cut anywhere, or with any byte changed, it is read or refused in a sentence; nothing else happens.
TEST(FlightFile, OutlivesDamage) {
  FlightFile file = sample(2, 77);
  file.counts = {{1, runtime::EntranceCount::Kind::Send, 3, 9}};
  file.queues = {{}, {{.step = 2, .entrance = 8, .command = 4, .state = CommandState::Running, .waitMs = 5}}};
  const std::string text = file.text();
  size_t refused = 0;
  const auto tryIt = [&](const std::string &damaged) {
    try {
      (void)FlightFile::parse(damaged);
    } catch (const Error &) {
      ++refused;
    }
  };
  for (size_t length = 0; length < text.size(); ++length)
    tryIt(text.substr(0, length));
  EXPECT_EQ(refused, text.size());
  for (size_t i = 0; i < text.size(); ++i)
    for (const char byte : {'\0', '9', '-', '[', '\xff'}) {
      std::string damaged = text;
      damaged[i] = byte;
      tryIt(damaged);
    }
  EXPECT_GT(refused, 2 * text.size());
  EXPECT_THROW(FlightFile::parse(std::string(1 << 20, '[')), Error);
}

/// Three ranks of a plan with collectives; rank 1 may be made the culprit.
class PostmortemTest : public testing::Test {
protected:
  PostmortemTest() {
    const std::string bytes = plan::framePlan(plan_);
    digest_ = crc32c(std::as_bytes(std::span(bytes)));
  }

  /// A record of a rank whose every queue has nothing to do.
  FlightFile idle(uint32_t rank) const {
    FlightFile file = sample(rank, digest_);
    file.queues.resize(size_t(plan_.roles(0).queues_size()));
    return file;
  }
  void write(const FlightFile &file) const { writeFile(folder_ / runtime::flightFileName(file.rank), file.text()); }
  std::string text() const {
    const runtime::Records records = runtime::readRecords(folder_.path().string(), plan_);
    EXPECT_TRUE(nlohmann::json::accept(runtime::flightTimeline(plan_, records)));
    return runtime::postmortemText(plan_, records);
  }

  static runtime::HostStage awaits(int64_t sinceMs) {
    return {.state = runtime::HostState::Awaits,
            .number = 8,
            .sinceMs = sinceMs,
            .work = "waits for the other processes after step 9"};
  }
  static runtime::HostStage works(int64_t sinceMs) {
    return {.state = runtime::HostState::Works, .number = 7, .sinceMs = sinceMs, .work = "writes --export w"};
  }
  /// Appends a collective; endMs 0: it has not ended.
  static void enter(FlightFile &file, int64_t beginMs, int64_t endMs) {
    const uint64_t entrance = ++file.counts[0].entrances;
    file.queues[comm].push_back({.entrance = entrance,
                                 .call = uint32_t(1 + (entrance - 1) / 2),
                                 .command = entrance % 2 == 1 ? reduceScatter : allReduce,
                                 .state = endMs > 0 ? CommandState::Done : CommandState::Running,
                                 .waitMs = beginMs,
                                 .beginMs = beginMs,
                                 .endMs = endMs});
  }
  /// A record of a rank that has ended its first two collectives.
  FlightFile atWork(uint32_t rank, int64_t writtenMs) const {
    FlightFile file = idle(rank);
    file.writtenMs = writtenMs;
    file.counts = {{comm, runtime::EntranceCount::Kind::Collective, 0, 0}};
    enter(file, 97000, 97001);
    enter(file, 97002, 97003);
    return file;
  }
  /// Ranks 0 and 1 have been in the third for 2 s.
  void writeThoseThatWait() const {
    for (const uint32_t rank : {0u, 1u}) {
      FlightFile file = atWork(rank, 100000);
      enter(file, 98000, 0);
      write(file);
    }
  }

  static constexpr uint32_t comm = 1, feed = 2, reduceScatter = 7, allReduce = 8; // of the plan
  const proto::Plan plan_ = shardedPlan(3, 2).plan;
  uint32_t digest_ = 0;
  TemporaryFolder folder_;
};

/// mpirun lets a stopped process go on to end it. However far it comes before it writes its record, and however long
/// that takes, it is the one that stood still.
TEST_F(PostmortemTest, NamesAProcessThatWentOnWhenTheRunWasOver) {
  const int64_t wentOn = 100050;
  for (const int64_t stopped : {97990, 98010, 98900}) // before the third collective, or within
    for (const int64_t later : {4, 20, 500, 1500, 2500, 600000})
      for (const int entered : {2, 3, 4, 5}) {
        SCOPED_TRACE(testing::Message() << "stopped at " << stopped << ", wrote " << later
                                        << " ms after it went on, in #" << entered);
        writeThoseThatWait();
        FlightFile file = atWork(2, wentOn + later);
        for (int i = 3; i <= entered; ++i)
          enter(file, i > 3 || stopped < 98000 ? wentOn + i : 98005, i < entered ? wentOn + i : 0);
        file.stills = {{.ms = wentOn - stopped + 100, .untilMs = wentOn}};
        if (later > 1500) // it may have stood still once more, when mpirun was about to end it
          file.stills.push_back({.ms = 1000, .untilMs = wentOn + later});
        write(file);
        EXPECT_THAT_CONTAINS("\n" + text(), "\nRank 2 stood still for ");
      }
}

/// Likewise for what took longer than the others waited, and for a host that stood still between steps.
TEST_F(PostmortemTest, NamesWorkThatEndedWhenTheRunWasOver) {
  writeThoseThatWait();
  FlightFile file = atWork(2, 100060);
  file.data = {"d.bin"};
  file.queues[0].push_back(
      {.call = 2, .command = feed, .state = CommandState::Done, .waitMs = 97990, .beginMs = 97990, .endMs = 100010});
  enter(file, 100011, 100012);
  enter(file, 100013, 0);
  write(file);
  EXPECT_THAT_CONTAINS(text(), "Rank 2 is in feed of input x from d.bin, step 1, micro-batch 1, for 2.0 s.");
}

TEST_F(PostmortemTest, NamesAHostThatCameWhenTheRunWasOver) {
  for (const uint32_t rank : {0u, 1u, 2u}) {
    FlightFile file = idle(rank);
    file.stages = {awaits(98000)};
    if (rank == 2) {
      file.writtenMs = 100060;
      file.stages = {works(97000), awaits(100050)};
    }
    write(file);
  }
  EXPECT_THAT_CONTAINS(text(), "Rank 2 writes --export w, for ");
}

/// All are in the same collective: rank 0 expects the first part of rank 1, the others the second of rank 0.
TEST_F(PostmortemTest, NamesTheLinkThatLostAMessageWithinACollective) {
  using Peers = std::vector<runtime::PeerCount>; // {sent, expected, received}
  const Peers none = {}, of0 = {{0, 0, 0}, {7, 7, 6}, {7, 7, 7}}, of1 = {{7, 8, 7}, {0, 0, 0}, {8, 8, 8}},
              of2 = {{7, 8, 7}, {8, 8, 8}, {0, 0, 0}};
  const auto writeAll = [&](bool counts) {
    for (const uint32_t rank : {0u, 1u, 2u}) {
      FlightFile file = atWork(rank, 100000);
      enter(file, 98000, 0);
      if (counts)
        file.counts[0].peers = rank == 0 ? of0 : rank == 1 ? of1 : of2;
      write(file);
    }
  };
  writeAll(true);
  EXPECT_THAT_CONTAINS("\n" + text(), "\nRank 0 has been in reduce_scatter #3 of communicator ");
  EXPECT_THAT_CONTAINS(text(), "for 2.0 s, but a message from rank 1 to rank 0 was lost on the way, while all ranks");
  EXPECT_THAT_CONTAINS(text(), "finished it. Ranks 1 and 2 wait for rank 0 in reduce_scatter #3");
  writeAll(false); // as of NCCL
  EXPECT_THAT_CONTAINS(text(), "but all ranks are in it, and none comes out: the network between them");
}

TEST_F(PostmortemTest, NamesALostMessage) {
  FlightFile file = atWork(0, 100000);
  enter(file, 98000, 0);
  write(file);
  for (const uint32_t rank : {1u, 2u}) {
    file = atWork(rank, 100000);
    enter(file, 98000, 98001);
    enter(file, 98002, 0);
    write(file);
  }
  EXPECT_THAT_CONTAINS(text(), "Rank 0 has been in reduce_scatter #3 of communicator ");
  EXPECT_THAT_CONTAINS(text(), "but ranks 1 and 2 have finished it: a message to rank 0 was lost on the way.");
}

TEST_F(PostmortemTest, NamesWhoIsBehindBetweenSteps) {
  for (const uint32_t rank : {0u, 1u, 2u}) {
    FlightFile file = idle(rank);
    file.stages = {rank == 1 ? works(90000) : awaits(90000)};
    write(file);
  }
  EXPECT_THAT_CONTAINS(text(),
                       "Rank 1 writes --export w, for 10.0 s. Ranks 0 and 2 wait for rank 1 between steps (waits for");
}

TEST_F(PostmortemTest, NamesARankThatWasNotHeardBetweenSteps) {
  for (const uint32_t rank : {0u, 1u, 2u}) {
    FlightFile file = idle(rank);
    file.stages = {awaits(90000)};
    file.missed = rank == 2 ? std::vector<uint32_t>{1} : std::vector<uint32_t>{};
    write(file);
  }
  EXPECT_THAT_CONTAINS("\n" + text(),
                       "\nRank 1 has been between steps (waits for the other processes after step 9) for "
                       "10.0 s, but it has come as far as the others: what it said to them was lost");
  EXPECT_THAT_CONTAINS(text(), "Ranks 0 and 2 wait for rank 1 between steps");
  FlightFile file = idle(0);
  file.missed = {3};
  write(file);
  EXPECT_THAT_CONTAINS(text(), "flight-0.json is not used: it names what the plan does not have");
}

TEST_F(PostmortemTest, NamesARankWithoutARecord) {
  for (const uint32_t rank : {0u, 2u}) {
    FlightFile file = idle(rank);
    file.stages = {awaits(90000)};
    write(file);
  }
  EXPECT_THAT_CONTAINS(text(), "Rank 1 left no record: it was stopped or killed");
  FlightFile old = idle(1); // of an earlier run
  old.run = "b";
  old.writtenMs -= 50000;
  write(old);
  EXPECT_THAT_CONTAINS(text(), "Rank 1 left no record that can be used (it is of an earlier run)");
  writeFile(folder_ / "flight-1.json", "{\"flight_recorder\": 2}\n");
  EXPECT_THAT_CONTAINS(text(), "flight-1.json is not used: it is damaged");
}

TEST_F(PostmortemTest, RefusesWhatIsOfAnotherPlan) {
  FlightFile file = idle(0);
  file.plan ^= 1;
  write(file);
  EXPECT_THROW(text(), Error);
  file = idle(0);
  file.queues.pop_back();
  write(file);
  EXPECT_THROW(text(), Error);
  file = idle(0);
  file.queues[0].push_back({.command = 1u << 30});
  write(file);
  EXPECT_THROW(text(), Error);
}

TEST(FlightRecorder, CostsANoteWhereItCannotWrite) {
  const TemporaryFolder folder;
  writeFile(folder / "file", "");
  runtime::FlightRecorder recorder([](const std::string &) {});
  recorder.begin({.folder = folder / "file", .id = "a", .data = {}});
  const proto::Plan plan = shardedPlan(3, 2).plan;
  (void)recorder.addRank(plan, 0);
  recorder.failed("it hangs");
  EXPECT_THAT_CONTAINS(recorder.finish(), "the flight record is lost: ");
}

/// The others' time-out is over in that time, so it is what they have waited for.
TEST(FlightRecorder, NotesThatItsProcessWasStopped) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    runtime::FlightRecorder recorder([](const std::string &) {});
    recorder.begin({.folder = folder / "records", .id = "a", .ranks = 3, .data = {}});
    const proto::Plan plan = shardedPlan(3, 2).plan;
    (void)recorder.addRank(plan, 0);
    (void)::raise(SIGSTOP);
    recorder.failed("another rank timed out");
    (void)recorder.finish();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  std::this_thread::sleep_for(std::chrono::milliseconds(1300));
  ::kill(child, SIGCONT);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const FlightFile file = FlightFile::parse(readFile(folder / "records/flight-0.json"));
  ASSERT_EQ(file.stills.size(), 1u);
  EXPECT_GE(file.stills[0].ms, 1290);
  EXPECT_GE(file.writtenMs, file.stills[0].untilMs);
}

TEST(FlightRecorder, WritesNothingForARunThatEndsAsItShould) {
  const TemporaryFolder folder;
  runtime::FlightRecorder recorder([](const std::string &) {});
  recorder.begin({.folder = folder / "records", .id = "a", .data = {}});
  recorder.rest();
  recorder.failed("stopped by a signal");
  EXPECT_EQ(recorder.finish(), "");
  EXPECT_FALSE(std::filesystem::exists(folder / "records"));
}

} // namespace
} // namespace ds::test
