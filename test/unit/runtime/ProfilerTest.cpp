//===- ProfilerTest.cpp - a plan's configuration of tables that is none ---===//
#include "runtime/monitor/Profiler.h"

#include "core/Error.h"

#include <gtest/gtest.h>

#include <string>

namespace ds::runtime {
namespace {

std::string refusal(const char *config) {
  plan::proto::Plan plan;
  plan.set_config_json(config);
  Profiler profiler;
  try {
    profiler.profileOf(plan);
  } catch (const Error &error) {
    return error.what();
  }
  return "accepted";
}

TEST(Profiler, KeysOfAnotherTypeAreRefusedByName) {
  EXPECT_EQ(refusal(R"({"wall_clock_breakdown": "yes"})"),
            "the plan's configuration has wall_clock_breakdown = \"yes\"; it is true or false; compile the plan again");
  EXPECT_EQ(refusal(R"({"flops_profiler": {"enabled": true, "profile_step": -1}})"),
            "the plan's configuration has flops_profiler.profile_step = -1; it is the number of a step, 1 or more; "
            "compile the plan again");
  EXPECT_EQ(refusal(R"({"comms_logger": 5})"),
            "the plan's configuration has comms_logger = 5; it is an object such as {\"enabled\": true}; compile the "
            "plan again");
  for (const char *config : {R"({"steps_per_print": 1.5})", R"({"comms_logger": {"enabled": 1}})",
                             R"({"flops_profiler": []})", R"({"flops_profiler": {"enabled": true, "output_file": 5}})"})
    EXPECT_NE(refusal(config).find("compile the plan again"), std::string::npos) << config;
  EXPECT_EQ(refusal(R"({"wall_clock_breakdown": true, "flops_profiler": {"enabled": true}})"), "accepted");
}

} // namespace
} // namespace ds::runtime
