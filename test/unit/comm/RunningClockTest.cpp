//===- RunningClockTest.cpp - time in which this process runs -------------===//
#include "core/RunningClock.h"

#include <chrono>
#include <gtest/gtest.h>

namespace ds::runtime {
namespace {

using namespace std::chrono_literals;

/// The tests' own clock.
RunningClock::Time testNow{};
RunningClock::Time testClock() { return testNow; }

TEST(RunningClock, CountsLittleOfATimeInWhichNobodyLooked) {
  RunningClock clock(100ms, testClock);
  const RunningClock::Time begin = clock.now();
  testNow += 40ms;
  EXPECT_EQ(clock.now() - begin, 40ms);
  testNow += 2h; // the process was stopped
  EXPECT_EQ(clock.now() - begin, 140ms);
  testNow += 60ms;
  EXPECT_EQ(clock.now() - begin, 200ms);
}

TEST(Patience, OutlivesAStop) {
  Patience patience(250ms, RunningClock(100ms, testClock));
  EXPECT_EQ(patience.nextSleep(), 100ms);
  testNow += 1h;
  EXPECT_FALSE(patience.over());
  testNow += 90ms;
  EXPECT_EQ(patience.nextSleep(), 60ms);
  testNow += 59ms;
  EXPECT_FALSE(patience.over());
  testNow += 1ms;
  EXPECT_TRUE(patience.over());
  EXPECT_EQ(patience.nextSleep(), 0ms);
}

} // namespace
} // namespace ds::runtime
