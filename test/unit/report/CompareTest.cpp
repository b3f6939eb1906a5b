//===- CompareTest.cpp - what two plans decide otherwise ------------------===//
#include "compiler/report/Compare.h"

#include "core/Error.h"
#include "test/unit/report/SmallPlan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ds::report {
namespace {

using plan::proto::Plan;

/// "section: what: a -> b" of the only change.
std::string onlyChange(const Plan &before, const Plan &after) {
  const std::vector<Change> changes = compare(before, after);
  if (changes.size() != 1)
    return std::to_string(changes.size()) + " changes";
  return changes[0].section + ": " + changes[0].what + ": " + changes[0].before + " -> " + changes[0].after;
}

template <typename Edit> std::string changeOf(Edit edit) {
  Plan after = smallPlan();
  edit(after);
  return onlyChange(smallPlan(), after);
}

TEST(Compare, FindsNothingWhereNothingChanged) {
  EXPECT_TRUE(compare(smallPlan(), smallPlan()).empty());
  const std::string text = diffReport(smallPlan(), "a", smallPlan(), "b", Format::Text);
  EXPECT_NE(text.find("nothing differs: the plans are the same in every field"), std::string::npos) << text;
}

TEST(Compare, SaysWhenOnlySingleCommandsDiffer) {
  Plan after = smallPlan();
  after.mutable_roles(0)->mutable_buffers(3)->set_name("other");
  const std::string text = diffReport(smallPlan(), "a", after, "b", Format::Text);
  EXPECT_NE(text.find("no decision differs"), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(diffReport(smallPlan(), "a", after, "b", Format::Json))["equal"], false);
}

TEST(Compare, NamesWhatChanged) {
  EXPECT_EQ(changeOf([](Plan &plan) { plan.set_numerics("lossy"); }), "numerics: class: bit-equal -> lossy");
  EXPECT_EQ(changeOf([](Plan &plan) { plan.mutable_training()->set_accumulation_steps(7); }),
            "world: accumulation steps: 2 -> 7");
  EXPECT_EQ(changeOf([](Plan &plan) { plan.mutable_machine()->set_threads(99); }).substr(0, 15), "world: threads:");
  EXPECT_EQ(changeOf([](Plan &plan) { plan.mutable_roles(0)->mutable_programs(0)->set_captured(true); }),
            "world: program step: command by command -> captured");
  EXPECT_EQ(changeOf([](Plan &plan) { plan.mutable_machine()->set_reserve(4096); }), "world: reserve: 0 -> 4,096");
  EXPECT_EQ(changeOf([](Plan &plan) { plan.mutable_roles(0)->mutable_arenas(0)->set_bytes(20480); }),
            "memory: role main, device: arena: 12,288 -> 20,480");
}

TEST(Compare, NamesConfigurationKeysByTheirPath) {
  Plan before = smallPlan(), after = smallPlan();
  before.set_config_json(R"({"zero_optimization": {"stage": 2}, "gradient_clipping": 1.0})");
  after.set_config_json(R"({"zero_optimization": {"stage": 3}, "gradient_clipping": 1.0})");
  EXPECT_EQ(onlyChange(before, after), "configuration: zero_optimization.stage: 2 -> 3");
}

TEST(Compare, NamesWhoOwnsAParameter) {
  Plan before = smallPlan(), after = smallPlan();
  after.add_communicators();
  plan::proto::Variable &weights = *after.mutable_variables(int(after.roles(0).buffers(0).variable()));
  weights.mutable_placement()->mutable_window()->set_count(128);
  const std::vector<Change> changes = compare(before, after);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes[0].section, "ownership");
  EXPECT_EQ(changes[0].before, "whole on every rank");
  EXPECT_EQ(changes[0].after, "128 of 256 elements on every rank");
}

TEST(Compare, JsonHasEveryChange) {
  Plan after = smallPlan();
  after.set_numerics("reassociated");
  const auto result = nlohmann::json::parse(diffReport(smallPlan(), "x.dsplan", after, "y.dsplan", Format::Json));
  EXPECT_EQ(result["equal"], false);
  EXPECT_EQ(result["a"], "x.dsplan");
  EXPECT_EQ(
      result["changes"],
      nlohmann::json::parse(R"([{"section": "numerics", "what": "class", "a": "bit-equal", "b": "reassociated"}])"));
}

std::string refusal(const Plan &a, const Plan &b) {
  try {
    compare(a, b);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(Compare, RefusesPlansOfDifferentModels) {
  Plan renamed = smallPlan(), grown = smallPlan();
  renamed.set_model("large");
  EXPECT_EQ(refusal(smallPlan(), renamed),
            "the plans are of different models, small and large: their parameters are the "
            "same, their names are not; ds-opt diff compares plans of one model");
  grown.mutable_variables(0)->set_shape(0, 1000);
  EXPECT_NE(refusal(smallPlan(), grown).find("parameter " + grown.variables(0).name() + " is float32 ["),
            std::string::npos)
      << refusal(smallPlan(), grown);
}

TEST(Compare, RefusesPlansOfDifferentVersions) {
  Plan newer = smallPlan();
  newer.set_format_version(smallPlan().format_version() + 1);
  EXPECT_NE(refusal(smallPlan(), newer).find("format versions"), std::string::npos);
}

} // namespace
} // namespace ds::report
