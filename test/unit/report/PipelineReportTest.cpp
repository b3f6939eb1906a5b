//===- PipelineReportTest.cpp - what is said of a plan of two stages ------===//
#include "compiler/report/Compare.h"
#include "compiler/report/Facts.h"
#include "compiler/report/PipelineStages.h"
#include "compiler/report/Report.h"
#include "compiler/report/WireBytes.h"
#include "runtime/plan/run/Flops.h"
#include "test/unit/report/SmallPlan.h"
#include "test/unit/runtime/PipelinePlan.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ds::report {
namespace {

using namespace plan::proto;
using nlohmann::json;

void addStage(Plan &plan, const std::string &first, const std::string &last, double forward, double backward,
              uint32_t inFlight) {
  Stage &stage = *plan.mutable_pipeline()->add_stages();
  stage.set_first_op(first);
  stage.set_last_op(last);
  stage.set_forward_seconds(forward);
  stage.set_backward_seconds(backward);
  stage.set_microbatches_in_flight(inFlight);
}

/// Two stages of two data-parallel ranks, four micro-batches; the second stage takes three times as long.
Plan twoStages() {
  Plan plan = test::pipelinePlan(4, 2).plan;
  plan.set_model("two");
  Pipeline &pipeline = *plan.mutable_pipeline();
  pipeline.set_schedule("1f1b");
  pipeline.set_chunks(1);
  pipeline.set_bubble_fraction(0.25);
  addStage(plan, "h.0/MatMul", "h.0/Add", 0.001, 0.002, 2);
  addStage(plan, "h.1/MatMul", "loss", 0.003, 0.006, 1);
  SentValue &sent = *pipeline.mutable_stages(0)->add_sent();
  sent.set_name("h.0/Add");
  sent.set_bytes(12);
  sent.set_to_stage(1);
  return plan;
}

json jsonOf(const Plan &plan) { return json::parse(report(plan, {Format::Json, false})); }

TEST(PipelineReport, Json) {
  const json result = jsonOf(twoStages());
  EXPECT_EQ(result["world"], json({{"data", 2}, {"pipe", 2}, {"tensor", 1}}));
  const json &pipeline = result["pipeline"];
  EXPECT_EQ(pipeline["schedule"], "1f1b");
  EXPECT_EQ(pipeline["stages"], 2);
  EXPECT_EQ(pipeline["chunks"], 1);
  EXPECT_EQ(pipeline["microbatches"], 4);
  EXPECT_EQ(pipeline["bubble_fraction"], 0.25);
  EXPECT_DOUBLE_EQ(pipeline["imbalance"].get<double>(), 1.5); // 9 ms of a mean of 6
  ASSERT_EQ(pipeline["stages_detail"].size(), 2u);
  EXPECT_EQ(pipeline["stages_detail"][0], json({{"first_op", "h.0/MatMul"},
                                                {"last_op", "h.0/Add"},
                                                {"forward_seconds", 0.001},
                                                {"backward_seconds", 0.002},
                                                {"weight_seconds", 0.0},
                                                {"bytes_sent", 12},
                                                {"sent", {{{"name", "h.0/Add"}, {"bytes", 12}, {"to_stage", 1}}}},
                                                {"microbatches_in_flight", 2}}));
  EXPECT_EQ(pipeline["stages_detail"][1]["sent"], json::array());
}

TEST(PipelineReport, EveryRankHasItsStageAndItsMessages) {
  const json ranks = jsonOf(twoStages())["ranks_detail"];
  ASSERT_EQ(ranks.size(), 4u);
  for (uint64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(ranks[rank]["role"], rank < 2 ? "stage0" : "stage1");
    EXPECT_EQ(ranks[rank]["coords"], json({{"data", rank % 2}, {"pipe", rank / 2}, {"tensor", 0}}));
    // Four times h [1, 3] one way, its gradient the other, and the loss once.
    const json &wire = ranks[rank]["wire_bytes_per_step"];
    EXPECT_EQ(wire["send"], rank < 2 ? 4 * 12 : 4 * 12 + 4);
    EXPECT_EQ(wire["recv"], rank < 2 ? 4 * 12 + 4 : 4 * 12);
    // Squares are gathered along axis pipe, gradients summed along axis data.
    EXPECT_EQ(ranks[rank]["wire_bytes_by_axes"],
              json({{"data", wire["all_reduce"]},
                    {"pipe", wire["send"].get<uint64_t>() + wire["all_gather"].get<uint64_t>()}}));
  }
}

TEST(PipelineReport, ParametersHaveTheStagesThatHoldThem) {
  const json parameters = jsonOf(twoStages())["parameters"];
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0]["name"], "a");
  EXPECT_EQ(parameters[0]["stages"], json::array({0}));
  EXPECT_EQ(parameters[1]["name"], "c");
  EXPECT_EQ(parameters[1]["stages"], json::array({1}));
  const Plan plan = twoStages();
  const std::vector<std::vector<uint64_t>> stages = stagesOfVariables(plan);
  for (int i = 0; i < plan.variables_size(); ++i)
    if (plan.variables(i).name() == "step") { // held by both
      EXPECT_EQ(stages[size_t(i)], (std::vector<uint64_t>{0, 1}));
    }
}

uint32_t addOp(Plan &plan, const char *name, std::initializer_list<uint32_t> operands, uint32_t result) {
  ReferenceOp &op = *plan.mutable_reference()->add_ops();
  op.set_op(name);
  op.set_function("microbatch");
  op.mutable_operands()->Assign(operands.begin(), operands.end());
  op.add_results(result);
  return uint32_t(plan.reference().ops_size() - 1);
}

uint32_t addValue(Plan &plan, std::initializer_list<int64_t> shape) {
  ReferenceValue &value = *plan.mutable_reference()->add_values();
  value.set_dtype(DTYPE_F32);
  value.mutable_shape()->Assign(shape.begin(), shape.end());
  return uint32_t(plan.reference().values_size() - 1);
}

/// The first command of the role's routine.
Command &commandOf(Plan &plan, int role, const std::string &routine) {
  for (Routine &one : *plan.mutable_roles(role)->mutable_routines())
    if (one.name() == routine)
      return *one.mutable_commands(0);
  throw std::runtime_error("no routine " + routine);
}

TEST(PipelineReport, WorkIsThatOfTheRole) {
  Plan plan = twoStages();
  plan.clear_reference();
  for (Role &role : *plan.mutable_roles())
    for (Routine &routine : *role.mutable_routines())
      for (Command &command : *routine.mutable_commands())
        command.clear_reference();
  const uint32_t left = addValue(plan, {8, 16}), right = addValue(plan, {16, 4}), result = addValue(plan, {8, 4});
  const auto addProduct = [&] { return addOp(plan, "train.matmul", {left, right}, result); };
  const uint32_t first = addProduct(), second = addProduct(), third = addProduct();
  commandOf(plan, 0, "forward").add_reference(first);
  for (const char *routine : {"forward", "backward"}) // both implement the second; it is one product
    commandOf(plan, 1, routine).add_reference(second);
  commandOf(plan, 1, "backward").add_reference(third);
  const uint64_t product = 2 * 8 * 16 * 4, microbatches = 4;
  EXPECT_EQ(ds::plan::matmulFlopsPerStep(plan), 3 * product * microbatches);
  EXPECT_EQ(ds::plan::matmulFlopsPerStep(plan, plan.roles(0)), product * microbatches);
  EXPECT_EQ(ds::plan::matmulFlopsPerStep(plan, plan.roles(1)), 2 * product * microbatches);
}

// Two stages on a rank: the routine that reads a parameter says which of them holds it.
TEST(PipelineReport, ChunksOfARank) {
  Plan plan = twoStages();
  plan.mutable_pipeline()->set_schedule("interleaved");
  plan.mutable_pipeline()->set_chunks(2);
  addStage(plan, "", "", 0.001, 0.002, 1);
  addStage(plan, "", "", 0.001, 0.002, 1);
  const uint32_t a = addValue(plan, {5, 3}), x = addValue(plan, {1, 5}), h = addValue(plan, {1, 3});
  const uint32_t read = addOp(plan, "train.read", {}, a);
  plan.mutable_reference()->mutable_ops(int(read))->add_variables(0);
  commandOf(plan, 0, "forward").add_reference(addOp(plan, "train.matmul", {x, a}, h));
  for (Routine &routine : *plan.mutable_roles(0)->mutable_routines())
    if (routine.name() == "forward") {
      routine.set_phase(Routine::FORWARD);
      routine.set_stage(2);
    }
  ASSERT_EQ(plan.variables(0).name(), "a");
  EXPECT_EQ(stagesOfVariables(plan)[0], (std::vector<uint64_t>{2}));
}

TEST(PipelineReport, Text) {
  const std::string page = report(twoStages());
  EXPECT_NE(page.find("  pipeline  1f1b, 2 stages, 4 micro-batches; bubble 25.0 % of a step, slowest stage 1.50 times "
                      "the mean, by the cost model\n"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find(R"(
pipeline stages, a micro-batch
  stage  pipe  forward  backward  of the mean      sends  bytes  in flight  first op    last op
      0     0  1.00 ms   2.00 ms       50.0 %   1 tensor     12          2  h.0/MatMul  h.0/Add
      1     1  3.00 ms   6.00 ms      150.0 %  0 tensors      0          1  h.1/MatMul  loss
)"),
            std::string::npos)
      << page;
  // The first stage has the larger parameter, and so more to sum over the data ranks.
  EXPECT_NE(
      page.find("from rank 0: all_gather 8, reduce_scatter 0, all_reduce 240, send 48; along data 240, pipe 56\n"),
      std::string::npos)
      << page;
}

TEST(PipelineReport, HtmlHasTheSameTable) {
  const std::string page = report(twoStages(), {Format::Html, false});
  EXPECT_NE(page.find("Pipeline stages, a micro-batch"), std::string::npos);
  EXPECT_NE(page.find("h.1/MatMul"), std::string::npos);
}

TEST(PipelineReport, DiffNamesWhatChanged) {
  Plan after = twoStages();
  after.mutable_pipeline()->set_schedule("gpipe");
  after.mutable_pipeline()->mutable_stages(1)->set_first_op("h.2/MatMul");
  const std::vector<Change> changes = compare(twoStages(), after);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].section + ": " + changes[0].what + ": " + changes[0].after, "pipeline: schedule: gpipe");
  EXPECT_EQ(changes[1].what + ": " + changes[1].before + " -> " + changes[1].after,
            "stage 1: first op: h.1/MatMul -> h.2/MatMul");
}

TEST(PipelineReport, StagesWithoutTimes) {
  Pipeline pipeline;
  pipeline.add_stages();
  EXPECT_EQ(imbalance(pipeline), 1);
  EXPECT_EQ(secondsText(0), "0 ns");
  EXPECT_EQ(secondsText(2.5e-6), "2.50 us");
  EXPECT_EQ(secondsText(12), "12.0 s");
}

} // namespace
} // namespace ds::report
