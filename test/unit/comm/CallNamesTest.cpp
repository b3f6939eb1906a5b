//===- CallNamesTest.cpp - what a watchdog knows of a stream --------------===//
#include "runtime/comm/nccl/CallNames.h"

#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

using namespace std::chrono_literals;

TEST(CallNames, NumberWhatTheyMeet) {
  const auto names = std::make_unique<CallNames>();
  const std::string first = "h.0", second = "h.1", long_(300, 'x');
  EXPECT_EQ(names->number("all_gather", first.c_str()), 0u);
  EXPECT_EQ(names->number("all_gather", second.c_str()), 1u);
  EXPECT_EQ(names->number("all_gather", first.c_str()), 0u);
  EXPECT_EQ(names->number("send", long_.c_str()), 2u);
  EXPECT_STREQ((*names)[1].verb, "all_gather");
  EXPECT_STREQ((*names)[1].what.data(), "h.1");
  EXPECT_EQ(std::string((*names)[2].what.data()), std::string(119, 'x'));
  EXPECT_STREQ((*names)[3].verb, "");
}

TEST(CallNames, LastNumberStandsForTheRest) {
  const auto names = std::make_unique<CallNames>();
  std::vector<std::string> many(300);
  for (size_t i = 0; i < many.size(); ++i) {
    many[i] = "command " + std::to_string(i);
    EXPECT_EQ(names->number("all_reduce", many[i].c_str()), std::min<size_t>(i, 255));
  }
  EXPECT_STREQ((*names)[254].what.data(), "command 254");
  EXPECT_STREQ((*names)[255].what.data(), "...");
}

TEST(Overdue, IsAStreamThatStaysInOneCollective) {
  Overdue overdue;
  const Overdue::Time start;
  EXPECT_FALSE(overdue.look(0, 0, start, 100ms));
  EXPECT_FALSE(overdue.look(0, 0, start + 1h, 100ms)); // it is in none
  EXPECT_FALSE(overdue.look(1, 0, start + 1h, 100ms));
  EXPECT_FALSE(overdue.look(1, 0, start + 1h + 100ms, 100ms));
  EXPECT_TRUE(overdue.look(1, 0, start + 1h + 101ms, 100ms));
  EXPECT_FALSE(overdue.look(1, 1, start + 1h + 102ms, 100ms)); // it came out after all
  EXPECT_FALSE(overdue.look(2, 1, start + 2h, 100ms));
  EXPECT_FALSE(overdue.look(3, 2, start + 2h + 200ms, 100ms)); // another one
  EXPECT_TRUE(overdue.look(3, 2, start + 2h + 301ms, 100ms));
}

} // namespace
} // namespace ds::runtime
