//===- FitTest.cpp - whether what a plan needs is there -------------------===//
#include "compiler/report/Fit.h"

#include "test/unit/report/SmallPlan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ds::report {
namespace {

/// The small plan, whose arena has 12,288 bytes, on a machine with `memory` of them.
FitCase smallCase(uint64_t memory, uint64_t reserve = 0) {
  FitCase one;
  one.plan = smallPlan();
  one.plan->mutable_machine()->set_name("box");
  one.plan->mutable_machine()->set_device_memory(memory);
  one.plan->mutable_machine()->set_reserve(reserve);
  return one;
}

FitCase refused() {
  FitCase one;
  one.refusal = "bf16.enabled is true";
  one.config.emplace_back().set_path("bf16.enabled");
  one.config.back().set_value_json("true");
  one.config.back().set_status("rejected");
  return one;
}

TEST(Fit, ComparesArenaAndReserveWithTheMachine) {
  EXPECT_EQ(verdictOf(smallCase(0)), Verdict::Fits); // nothing is known of the machine
  EXPECT_EQ(verdictOf(smallCase(12288)), Verdict::Fits);
  EXPECT_EQ(verdictOf(smallCase(12287)), Verdict::DoesNotFit);
  EXPECT_EQ(verdictOf(smallCase(12288, 1)), Verdict::DoesNotFit);
  EXPECT_EQ(verdictOf(refused()), Verdict::Rejected);
}

TEST(Fit, TheWorstOfSeveralCounts) {
  EXPECT_EQ(verdictOf(std::vector{smallCase(0), smallCase(1)}), Verdict::DoesNotFit);
  EXPECT_EQ(verdictOf(std::vector{smallCase(0), refused(), smallCase(1)}), Verdict::Rejected);
}

TEST(Fit, SaysWhatIsShortAndWhatHelps) {
  EXPECT_EQ(
      reasonOf(smallCase(12000)),
      "role main, rank 0, needs 12.0 KiB of device memory, 288 B more than the 11.7 KiB that machine box has for it; "
      "workspaces of kernels hold the most, 4.00 KiB: a smaller train_micro_batch_size_per_gpu with more "
      "gradient_accumulation_steps needs less; 12KiB would do as it is");
  EXPECT_EQ(reasonOf(refused()), "bf16.enabled is true");
  EXPECT_EQ(reasonOf(smallCase(0)), "");
}

TEST(Fit, SaysWhatRecomputeDoesAndCouldDo) {
  FitCase one = smallCase(12000);
  one.plan->set_config_json(R"({"deepstatic": {"recompute": "none"}})");
  EXPECT_NE(reasonOf(one).find(": deepstatic.recompute \"auto\" keeps less where it has to; 12KiB would do as it is"),
            std::string::npos)
      << reasonOf(one);
  one.plan->set_config_json(R"({"deepstatic": {"recompute": "auto"}})");
  one.plan->mutable_recompute()->set_layers(4);
  one.plan->mutable_recompute()->set_layers_again(3);
  EXPECT_TRUE(reasonOf(one).ends_with(
      "gradient_accumulation_steps needs less; 12KiB would do as it is, with something computed again in 3 of 4 "
      "layers"))
      << reasonOf(one);
}

TEST(Fit, TheNumberThatWouldDoIsRoundedUp) {
  const auto number = [](uint64_t bytes) {
    FitCase one = smallCase(1);
    one.plan->mutable_roles(0)->mutable_arenas(0)->set_bytes(bytes);
    const std::string reason = reasonOf(one);
    const size_t at = reason.rfind("; ") + 2;
    return reason.substr(at, reason.find(" would") - at);
  };
  EXPECT_EQ(number(10239), "10239");
  EXPECT_EQ(number(10240), "10KiB");
  EXPECT_EQ(number(10241), "10.1KiB");
  EXPECT_EQ(number((100 << 20) + 1), "100.1MiB");
  EXPECT_EQ(number(uint64_t(20) << 30), "20GiB");
}

// Ranks along the pipe hold other stages; only data-parallel ranks can share out a stage's state.
TEST(Fit, ARankOfAStageAloneHasNobodyToShareWith) {
  FitCase one = smallCase(12000);
  one.plan->mutable_roles(0)->mutable_buffers(5)->set_category(plan::proto::Buffer::OPTIMIZER); // the scratch
  EXPECT_NE(reasonOf(one).find(": several ranks with zero_optimization.stage 1 shard them; "), std::string::npos)
      << reasonOf(one);
  plan::proto::Axis &axis = *one.plan->mutable_world()->add_axes();
  axis.set_name("pipe");
  axis.set_size(2);
  EXPECT_NE(reasonOf(one).find(": several data-parallel ranks with zero_optimization.stage 1 shard them; "),
            std::string::npos)
      << reasonOf(one);
}

TEST(Fit, JsonHasVerdictPhasesAndKeys) {
  const std::vector cases = {smallCase(10000, 100), refused()};
  const auto result = nlohmann::json::parse(fitReport("small", cases, {}, Format::Json));
  EXPECT_EQ(result["verdict"], "rejected");
  EXPECT_NE(std::string(result["bytes"]).find("exact for ds-run"), std::string::npos);
  const auto &memory = result["checks"][0]["memory"][0];
  EXPECT_EQ(memory["needed_bytes"], 12388);
  EXPECT_EQ(memory["room_bytes"], 10000);
  EXPECT_EQ(memory["fits"], false);
  EXPECT_EQ(memory["phases"]["step"], nlohmann::json({{"live_bytes", 10240}, {"fits", false}}));
  EXPECT_EQ(memory["phases"]["eval"], nlohmann::json({{"live_bytes", 5120}, {"fits", true}}));
  EXPECT_EQ(memory["holds"]["activations"], 2048);
  EXPECT_EQ(result["checks"][1]["reason"], "bf16.enabled is true");
  EXPECT_EQ(result["checks"][1]["config"][0]["status"], "rejected");
}

TEST(Fit, WhatWouldHelpIsSaidOnce) {
  FitCase two = smallCase(2), four = smallCase(3);
  two.ranks = 2;
  four.ranks = 4;
  FitCase other = refused();
  other.ranks = 8;
  const std::string text = fitReport("small", std::vector{smallCase(1), two, four, refused(), other}, {}, Format::Text);
  const std::string advice = "\non 1, 2, 4 ranks workspaces of kernels hold the most: a smaller "
                             "train_micro_batch_size_per_gpu with more gradient_accumulation_steps needs less\n";
  EXPECT_NE(text.find(advice), std::string::npos) << text;
  EXPECT_EQ(text.find("hold the most"), text.rfind("hold the most")) << text;
  EXPECT_NE(text.find("\n4 ranks: role main, rank 0, needs 12.0 KiB of device memory, 12.0 KiB more than the 3 B that "
                      "machine box has for it; 12KiB would do as it is\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n1, 8 ranks: bf16.enabled is true\n"), std::string::npos) << text;
}

TEST(Fit, ARefusedKeyHidesNoBytes) {
  FitCase one = smallCase(12288);
  one.refusal = "wandb.enabled is true";
  one.without = {"wandb.enabled", "wandb.group"};
  one.with = {"optimizer.type=AdamW"};
  EXPECT_EQ(verdictOf(one), Verdict::Rejected);
  EXPECT_EQ(reasonOf(one), "wandb.enabled is true");
  const std::string text = fitReport("small", std::vector{one}, {}, Format::Text);
  EXPECT_NE(text.find("  rejected, else fits  "), std::string::npos) << text;
  const std::string otherwise = "without wandb.enabled, wandb.group, with --set optimizer.type=AdamW: ";
  EXPECT_NE(text.find("\n1 rank " + otherwise + "fits, 12.0 KiB\n"), std::string::npos) << text;
  one.plan->mutable_machine()->set_device_memory(12287);
  const auto result = nlohmann::json::parse(fitReport("small", std::vector{one}, {}, Format::Json))["checks"][0];
  EXPECT_EQ(result["otherwise"], nlohmann::json({{"without", {"wandb.enabled", "wandb.group"}},
                                                 {"with", {"optimizer.type=AdamW"}},
                                                 {"verdict", "does_not_fit"}}));
  EXPECT_EQ(result["memory"][0]["needed_bytes"], 12288);
  EXPECT_TRUE(otherwiseOf(one).starts_with(otherwise + "does not fit: role main, rank 0, needs")) << otherwiseOf(one);
}

TEST(Fit, SaysWhatWasTried) {
  const std::vector<Trial> trials = {{.first = 2, .most = 1024},
                                     {.sets = {"zero_optimization.stage=3"}, .first = 1, .most = 1024, .ranks = 64}};
  const std::string text = fitReport("small", std::vector{smallCase(1)}, trials, Format::Text);
  EXPECT_NE(text.find("\ntried: 2 to 1,024 ranks would not do as it is written\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\ntried: 64 ranks would do with --set zero_optimization.stage=3\n"), std::string::npos) << text;
  const auto result = nlohmann::json::parse(fitReport("small", std::vector{smallCase(1)}, trials, Format::Json));
  EXPECT_EQ(result["trials"][0]["ranks"], nlohmann::json());
  EXPECT_EQ(result["trials"][1]["ranks"], 64);
}

TEST(Fit, SaysWhatRecomputeCosts) {
  FitCase one = smallCase(0);
  EXPECT_NE(fitReport("small", std::vector{one}, {}, Format::Text).find("  none  "), std::string::npos);
  for (int routine : {0, 1}) // one product of two is done again
    one.plan->mutable_roles(0)->mutable_routines(routine)->mutable_commands(0)->add_reference(0);
  one.plan->mutable_recompute()->set_layers(4);
  one.plan->mutable_recompute()->set_layers_again(3);
  EXPECT_NE(fitReport("small", std::vector{one}, {}, Format::Text).find("  50.0 % more  "), std::string::npos)
      << fitReport("small", std::vector{one}, {}, Format::Text);
  const auto result = nlohmann::json::parse(fitReport("small", std::vector{one}, {}, Format::Json));
  EXPECT_EQ(result["checks"][0]["recompute"],
            nlohmann::json({{"layers", 4}, {"layers_again", 3}, {"share_of_flops", 0.5}}));
}

TEST(Fit, TextIsATable) {
  const std::string text = fitReport("small", std::vector{smallCase(0), smallCase(1)}, {}, Format::Text);
  EXPECT_EQ(text.substr(0, 20), "small: does_not_fit\n");
  for (const char *part : {"unknown", "does not fit", "12.0 KiB", "exact for ds-run"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

} // namespace
} // namespace ds::report
