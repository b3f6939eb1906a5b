//===- TraceTest.cpp - rings of records, and the file they make -----------===//
#include "runtime/trace/Trace.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

namespace ds::test {
namespace {

using runtime::Trace;

TEST(Trace, WritesRowsAndEvents) {
  Trace trace;
  runtime::TraceRow &row = trace.addRow(3, 1, "comm");
  const auto &label = trace.addLabel({"all_gather", "collective", "h.0 \"quoted\\\xff", "forward"});
  row.add({&label, 1500, 4250, 7, 2});
  const auto json = nlohmann::json::parse(runtime::chromeTrace(trace.events()));
  ASSERT_EQ(json["traceEvents"].size(), 3u);
  EXPECT_EQ(json["traceEvents"][0]["args"]["name"], "rank 3");
  EXPECT_EQ(json["traceEvents"][1]["args"]["name"], "comm");
  const auto &event = json["traceEvents"][2];
  EXPECT_EQ(event["ph"], "X");
  EXPECT_EQ(event["name"], "all_gather");
  EXPECT_EQ(event["cat"], "collective");
  EXPECT_EQ(event["args"]["op"], "h.0 \"quoted\\\xEF\xBF\xBD");
  EXPECT_EQ(event["args"]["routine"], "forward");
  EXPECT_EQ(event["args"]["step"], 7);
  EXPECT_EQ(event["args"]["microbatch"], 2);
  EXPECT_EQ(event["ts"], 1.5);
  EXPECT_EQ(event["dur"], 2.75);
  EXPECT_EQ(event["pid"], 3);
  EXPECT_EQ(event["tid"], 1);
}

TEST(Trace, KeepsTheEndOfALongRun) {
  Trace trace(4);
  runtime::TraceRow &row = trace.addRow(0, 0, "compute");
  const auto &label = trace.addLabel({"sum", "kernel", "h.0", "forward"});
  for (uint64_t step = 0; step < 11; ++step)
    row.add({&label, 0, 1, step, 0});
  const auto json = nlohmann::json::parse(runtime::chromeTrace(trace.events()));
  ASSERT_EQ(json["traceEvents"].size(), 2u + 4);
  for (uint64_t i = 0; i < 4; ++i)
    EXPECT_EQ(json["traceEvents"][2 + i]["args"]["step"], 7 + i);
}

} // namespace
} // namespace ds::test
