//===- FlightTest.cpp - rings of commands, and the files made of them -----===//
#include "core/Crc32c.h"
#include "core/Error.h"
#include "runtime/device/CommandRing.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/flight/FlightRecorder.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/postmortem/FlightTimeline.h"
#include "runtime/postmortem/Postmortem.h"
#include "runtime/postmortem/Records.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/ShardedPlan.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
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
  file.hostState = runtime::HostState::Queues;
  file.hostWork = "step 3";
  return file;
}

TEST(FlightFile, ReadsWhatItHasWritten) {
  FlightFile file = sample(2, 77);
  file.counts = {{1, runtime::EntranceCount::Kind::Send, 3, 9}};
  file.queues = {{}, {{.step = 2, .entrance = 8, .command = 4, .state = CommandState::Running, .waitMs = 5}}};
  const FlightFile read = FlightFile::parse(file.text());
  EXPECT_EQ(read.text(), FlightFile::parse(read.text()).text());
  EXPECT_EQ(read.rank, 2u);
  EXPECT_EQ(read.plan, 77u);
  EXPECT_EQ(read.counts[0].entrances, 9u);
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

  const proto::Plan plan_ = shardedPlan(3, 2).plan;
  uint32_t digest_ = 0;
  TemporaryFolder folder_;
};

TEST_F(PostmortemTest, NamesWhoIsBehindBetweenSteps) {
  for (const uint32_t rank : {0u, 1u, 2u}) {
    FlightFile file = idle(rank);
    file.hostStage = rank == 1 ? 7 : 8;
    file.hostState = rank == 1 ? runtime::HostState::Works : runtime::HostState::Awaits;
    file.hostWork = rank == 1 ? "writes --export w" : "waits for the other processes after step 9";
    file.hostSinceMs = 90000;
    write(file);
  }
  EXPECT_THAT_CONTAINS(text(),
                       "Rank 1 writes --export w, for 10.0 s. Ranks 0 and 2 wait for rank 1 between steps (waits for");
}

TEST_F(PostmortemTest, NamesARankWithoutARecord) {
  for (const uint32_t rank : {0u, 2u}) {
    FlightFile file = idle(rank);
    file.hostState = runtime::HostState::Awaits;
    write(file);
  }
  EXPECT_THAT_CONTAINS(text(), "Rank 1 left no record: it was stopped or killed");
  FlightFile old = idle(1); // of an earlier run
  old.run = "b";
  old.writtenMs -= 50000;
  write(old);
  EXPECT_THAT_CONTAINS(text(), "Rank 1 left no record that can be used (it is of an earlier run)");
  writeFile(folder_ / "flight-1.json", "{\"flight_recorder\": 1}\n");
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
  (void)recorder.addRank(plan.roles(0), 0);
  recorder.failed("it hangs");
  EXPECT_THAT_CONTAINS(recorder.finish(), "the flight record is lost: ");
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
