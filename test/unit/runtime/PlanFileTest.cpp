//===- PlanFileTest.cpp - framing of plan files ---------------------------===//
#include "runtime/plan/format/PlanFile.h"
#include "core/AtomicFile.h"
#include "core/Crc32c.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>

namespace ds::test {
namespace {

std::span<const std::byte> bytes(const std::string &text) { return std::as_bytes(std::span(text)); }

TEST(Crc32c, GivesTheValuesOfRfc3720) {
  EXPECT_EQ(crc32c(bytes("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c(bytes(std::string(32, '\0'))), 0x8A9136AAu);
  EXPECT_EQ(crc32c(bytes("")), 0u);
}

TEST(Crc32c, ContinuesFromWhatCameBefore) { EXPECT_EQ(crc32c(bytes("56789"), crc32c(bytes("1234"))), 0xE3069283u); }

TEST(PlanFile, ReadsBackWhatItWrote) {
  const PlanBuilder builder;
  const std::string file = plan::framePlan(builder.plan);
  EXPECT_EQ(file.substr(0, 8), "DSPLAN\r\n");
  EXPECT_EQ(plan::unframePlan(bytes(file)).SerializeAsString(), builder.plan.SerializeAsString());
  EXPECT_EQ(plan::framePlan(builder.plan), file);
}

TEST(PlanFile, RefusesEveryTruncation) {
  const std::string file = plan::framePlan(PlanBuilder().plan);
  for (size_t length = 0; length < file.size(); ++length)
    EXPECT_NE(errorOf([&] { plan::unframePlan(bytes(file.substr(0, length))); }), "no error") << length;
  EXPECT_ERROR(plan::unframePlan(bytes(file.substr(0, file.size() - 1))), "truncated");
  EXPECT_ERROR(plan::unframePlan(bytes(file + "x")), "truncated or overwritten");
}

TEST(PlanFile, RefusesEveryFlippedBit) {
  const std::string file = plan::framePlan(PlanBuilder().plan);
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = char(damaged[bit / 8] ^ 1 << bit % 8);
    EXPECT_NE(errorOf([&] { plan::unframePlan(bytes(damaged)); }), "no error") << bit;
  }
}

TEST(PlanFile, RefusesAnotherFormatByName) {
  PlanBuilder builder;
  builder.plan.set_format_version(3);
  EXPECT_ERROR(plan::unframePlan(bytes(plan::framePlan(builder.plan))), "format version 3, and this build reads 2");
  builder.plan.set_format_version(1);
  EXPECT_ERROR(plan::unframePlan(bytes(plan::framePlan(builder.plan))),
               "format version 1, and this build reads 2; compile it again: ds-opt compile MODEL");
  builder.plan.set_format_version(0);
  EXPECT_ERROR(plan::unframePlan(bytes(plan::framePlan(builder.plan))), "no format version");
}

TEST(PlanFile, ErrorsOfReadPlanBeginWithThePath) {
  const TemporaryFolder folder;
  EXPECT_ERROR(plan::readPlan(folder / "none.dsplan"), "plan " + folder / "none.dsplan" + ": cannot be opened");
  EXPECT_ERROR(plan::readPlan(folder.path()), "not a regular file");
  writeFile(folder / "text", "hello");
  EXPECT_ERROR(plan::readPlan(folder / "text"), "does not begin as a plan file");
  ::mkfifo((folder / "pipe").c_str(), 0600);
  EXPECT_ERROR(plan::readPlan(folder / "pipe"), "not a regular file");
}

TEST(AtomicFile, LeavesNothingWithoutACommit) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "a");
    file.write(std::string_view("half"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  writeFileAtomically(folder / "a", "whole");
  writeFileAtomically(folder / "a", "again");
  EXPECT_EQ(readFile(folder / "a"), "again");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_ERROR(writeFileAtomically(folder / "no/such", ""), "cannot write");
  EXPECT_ERROR(writeFileAtomically(folder.path(), ""), "not a regular file");
}

} // namespace
} // namespace ds::test
