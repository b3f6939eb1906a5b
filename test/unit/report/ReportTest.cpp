//===- ReportTest.cpp - the text and the json of the small plan -----------===//
#include "compiler/report/Report.h"

#include "core/Error.h"
#include "test/unit/report/SmallPlan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ds::report {
namespace {

using nlohmann::json;

json jsonOf(const plan::proto::Plan &plan, bool allRanks = false) {
  return json::parse(report(plan, {Format::Json, allRanks}));
}

TEST(JsonReport, SaysWhatTheContractAsksFor) {
  const json result = jsonOf(smallPlan());
  EXPECT_EQ(result["format"], 1);
  EXPECT_EQ(result["model"], "small");
  EXPECT_EQ(result["ranks"], 1);
  EXPECT_EQ(result["world"], json({{"data", 1}, {"pipe", 1}, {"tensor", 1}}));
  EXPECT_EQ(result["numerics"], "bit-equal");
  EXPECT_EQ(result["pipeline"],
            json({{"schedule", "none"}, {"stages", 1}, {"microbatches", 2}, {"bubble_fraction", 0}}));
  ASSERT_EQ(result["ranks_detail"].size(), 1u);
  const json &rank = result["ranks_detail"][0];
  EXPECT_EQ(rank["rank"], 0);
  EXPECT_EQ(rank["role"], "main");
  EXPECT_EQ(rank["coords"], json({{"data", 0}, {"pipe", 0}, {"tensor", 0}}));
  EXPECT_EQ(rank["flops_per_step"], 4096);
  EXPECT_EQ(rank["recompute_flops_per_step"], 0);
  EXPECT_EQ(rank["wire_bytes_per_step"],
            json({{"all_gather", 0}, {"reduce_scatter", 0}, {"all_reduce", 0}, {"send", 0}, {"recv", 0}}));
}

TEST(JsonReport, Memory) {
  const json rank = jsonOf(smallPlan())["ranks_detail"][0];
  EXPECT_EQ(rank["memory"]["device"],
            json({{"arena_bytes", 12288},
                  {"peak_live_bytes", 10240},
                  {"weights", 1024},
                  {"gradients", 1024},
                  {"optimizer", 1024},
                  {"activations", 2048},
                  {"workspace", 4096},
                  {"communication", 0},
                  {"inputs", 1024},
                  {"constants", 0},
                  {"padding", 2048},
                  {"bucket_padding", 0},
                  {"lost", {{"alignment", 0}, {"message_slots", 0}, {"idle_slots", 2048}, {"gaps", 0}}},
                  {"phases", {{"init", 2048}, {"load", 2048}, {"step", 10240}, {"eval", 5120}, {"save", 2048}}}}));
  EXPECT_EQ(rank["memory"]["host"]["arena_bytes"], 0);
  EXPECT_EQ(rank["memory"]["nvme"]["phases"]["step"], 0);
}

TEST(JsonReport, ParametersAndConfiguration) {
  const json result = jsonOf(smallPlan());
  EXPECT_EQ(result["parameters"], json::array({{{"name", "h.0.w"},
                                                {"shape", {16, 16}},
                                                {"dtype", "float32"},
                                                {"stages", {0}},
                                                {"bytes", 1024},
                                                {"trainable", true},
                                                {"aliases", {"head.w"}}}}));
  EXPECT_EQ(
      result["config"],
      json::array(
          {{{"path", "zero_optimization.stage"}, {"value", 0}, {"status", "honoured"}, {"note", "nothing to do"}}}));
}

plan::proto::Plan manyRanks() {
  plan::proto::Plan plan = smallPlan();
  for (auto [name, size] : {std::pair("pipe", 2u), {"data", 16u}}) {
    plan::proto::Axis &axis = *plan.mutable_world()->add_axes();
    axis.set_name(name);
    axis.set_size(size);
  }
  plan::proto::Input &input = *plan.add_inputs();
  input.set_name("x");
  input.set_dtype(plan::proto::DTYPE_F32);
  input.add_shape(int64_t(plan.training().micro_batch_size()));
  plan::proto::AxisPlacement &data = *input.mutable_placement()->add_axes();
  data.set_axis(1);
  data.set_varies(true);
  plan.mutable_training()->set_train_batch_size(16 * 16);
  plan.mutable_roles(0)->set_ranks(1, 15);
  plan::proto::Role &second = *plan.add_roles();
  second = plan.roles(0);
  second.set_name("second");
  second.set_ranks(0, 16);
  second.set_ranks(1, 31);
  forgetStages(second);
  return plan;
}

TEST(JsonReport, AboveSixteenRanksOneOfEachRole) {
  const json result = jsonOf(manyRanks());
  EXPECT_EQ(result["ranks"], 32);
  ASSERT_EQ(result["ranks_detail"].size(), 2u);
  EXPECT_EQ(result["ranks_detail"][1]["rank"], 16);
  EXPECT_EQ(result["ranks_detail"][1]["role"], "second");
  EXPECT_EQ(result["ranks_detail"][1]["same_as"], json::array({{16, 31}}));
  EXPECT_EQ(result["ranks_detail"][1]["coords"], json({{"data", 0}, {"pipe", 1}, {"tensor", 0}}));
}

TEST(JsonReport, AllRanksOnRequest) {
  const json result = jsonOf(manyRanks(), true);
  ASSERT_EQ(result["ranks_detail"].size(), 32u);
  EXPECT_EQ(result["ranks_detail"][19]["coords"], json({{"data", 3}, {"pipe", 1}, {"tensor", 0}}));
  EXPECT_FALSE(result["ranks_detail"][19].contains("same_as"));
}

TEST(JsonReport, AValueThatIsNoJsonIsText) {
  plan::proto::Plan plan = smallPlan();
  plan.mutable_config(0)->set_value_json(std::string(5000, '['));
  EXPECT_EQ(jsonOf(plan)["config"][0]["value"], std::string(5000, '['));
}

TEST(Report, SaysWhatADeviceRecordsAndWhatItKeepsForItself) {
  plan::proto::Plan plan = smallPlan();
  EXPECT_EQ(jsonOf(plan)["captured"], json::array());
  plan.mutable_machine()->set_device("cuda");
  plan.mutable_machine()->set_isa("sm_90");
  plan.mutable_machine()->set_reserve(1536);
  plan.mutable_roles(0)->mutable_programs(0)->set_captured(true);
  EXPECT_EQ(jsonOf(plan)["captured"], json::array({"step"}));
  EXPECT_EQ(jsonOf(plan)["machine"],
            json({{"name", "cpu"}, {"device", "cuda"}, {"isa", "sm_90"}, {"reserve_bytes", 1536}}));
  const std::string page = report(plan);
  EXPECT_NE(page.find("\n  captured  program step as one launch of 9 commands\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\n  reserve   1.50 KiB of each rank's device, which the machine file keeps"), std::string::npos);
}

TEST(TextReport, IsAPage) {
  EXPECT_EQ(report(smallPlan()), R"(small
  compiled by ds-opt 0.1.0 for machine cpu (cpu)
  ranks     1 = 1 pipe x 1 data x 1 tensor; numerics bit-equal
  batch     16 samples a step = 8 a micro-batch x 2 accumulation steps x 1 data rank
  work      4.10 kFLOP of matrix products a step and rank, none recomputed
  step      about 1.64 us by the cost model, 100 GFLOP/s and 10 GB/s, which is no measure of a machine
  wire      0 B a step, from rank 0

commands of a step, rank 0, by the cost model
  kernel  commands  FLOP   bytes  share of time
  fill           9        16.4 k        100.0 %
  all            9        16.4 k        100.0 %

memory, rank 0 (role main), device
                             bytes            of the arena
  arena                     12,288  12.0 KiB         100 %
  live at the peak          10,240  10.0 KiB          83 %
    weights                  1,024  1.00 KiB           8 %
    gradients                1,024  1.00 KiB           8 %
    optimizer                1,024  1.00 KiB           8 %
    activations              2,048  2.00 KiB          17 %
    workspace                4,096  4.00 KiB          33 %
    inputs                   1,024  1.00 KiB           8 %
  fragmentation              2,048  2.00 KiB          17 %
    idle slots               2,048  2.00 KiB          17 %
  live in init, load, save   2,048  2.00 KiB          17 %
  live in step              10,240  10.0 KiB          83 %
  live in eval               5,120  5.00 KiB          42 %
  the peak is at command 1 (/h.0/mlp/MatMul) of backward, micro-batch 0, in step

largest at the peak, rank 0, device
  tensor   kind         bytes
  scratch  workspace    4,096  4.00 KiB
  h        activations  2,048  2.00 KiB
  w        weights      1,024  1.00 KiB
  m        optimizer    1,024  1.00 KiB
  g        gradients    1,024  1.00 KiB
  x        inputs       1,024  1.00 KiB

parameters
                      type     tensors  elements       bytes
  trained parameters  float32        1       256  256  1,024  1.00 KiB

configuration: 1 key written
  key                      value  answer
  zero_optimization.stage  0      honoured  nothing to do
  with every default: {"train_batch_size":16}
)");
}

TEST(Report, TheSamePlanGivesTheSameBytes) {
  EXPECT_EQ(report(smallPlan()), report(smallPlan()));
  EXPECT_EQ(report(smallPlan(), {Format::Json, false}), report(smallPlan(), {Format::Json, false}));
}

template <class Body> std::string failure(const Body &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "accepted";
}

TEST(Report, RefusesWhatIsNotAvailable) {
  EXPECT_EQ(failure([] { formatFromName("yaml"); }),
            "--format yaml: there is no such format; text, json, html and perfetto are available");
  EXPECT_EQ(formatFromName("json"), Format::Json);
}

// Indices are checked before they are used.
TEST(Report, RefusesABrokenPlan) {
  plan::proto::Plan plan = smallPlan();
  plan.mutable_roles(0)->mutable_buffers(2)->mutable_lives(0)->set_birth_routine(99);
  EXPECT_NE(failure([&] { report(plan); }), "accepted");
  plan = smallPlan();
  plan.mutable_roles(0)->mutable_buffers(2)->set_arena(3);
  EXPECT_NE(failure([&] { report(plan); }), "accepted");
}

} // namespace
} // namespace ds::report
