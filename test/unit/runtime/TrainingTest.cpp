//===- TrainingTest.cpp - steps, metrics, evaluation, export --------------===//
#include "runtime/session/Training.h"

#include "core/DType.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/executor/Scalar.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/StepReport.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/TestKernels.h"

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using runtime::Scalar;
using runtime::Training;
using runtime::TrainingOptions;

class Recorder final : public runtime::TrainingObserver {
public:
  void stepDone(const runtime::StepReport &report) noexcept override {
    losses.push_back(report.loss ? report.loss->asDouble() : NAN);
    if (report.step == stopAt)
      stop = true;
  }
  void evaluated(const runtime::EvaluationReport &report) noexcept override {
    evaluations.emplace_back(report.step, report.loss->asDouble());
  }

  std::vector<double> losses;
  std::vector<std::pair<uint64_t, double>> evaluations;
  uint64_t stopAt = 0;
  std::atomic<bool> stop = false;
};

/// p -= sum of a sample of two floats, two micro-batches a step; loss = sum of the step's samples. Data: i/3 each.
class TrainingTest : public testing::Test {
protected:
  TrainingTest() : builder(1, 2) {
    const uint32_t compute = builder.queue("compute");
    const uint32_t x = builder.input("x", DType::F32, {1, 2});
    const auto parameter = builder.variable("p", DType::F32, {}, 1);
    builder.variable("statistics", DType::I64, {2}, 3, proto::Variable::BUFFER);
    builder.variable("moment", DType::F32, {2}, 3, proto::Variable::OPTIMIZER);
    builder.plan.mutable_variables(0)->add_aliases("tied");
    const auto sample = builder.tensor("x", DType::F32, {1, 2}, proto::Buffer::CALL);
    const auto sum = builder.tensor("sum", DType::F32, {}, proto::Buffer::CALL);
    const auto total = builder.tensor("total", DType::F32, {}, proto::Buffer::STEP);
    const uint32_t begin = builder.routine("begin"), forward = builder.routine("forward"),
                   update = builder.routine("update");
    builder.fill(begin, compute, total);
    builder.feed(forward, compute, x, sample);
    builder.kernel(forward, compute, "sum", "rw", {sample, sum});
    builder.kernel(forward, compute, "accumulate", "rm", {sum, total});
    builder.kernel(update, compute, "subtract", "rm", {total, parameter});
    for (const char *name : {"step", "evaluate"}) {
      const uint32_t program = builder.program(name);
      builder.call(program, begin);
      builder.call(program, forward, 0);
      builder.call(program, forward, 1);
      if (std::string_view(name) == "step")
        builder.call(program, update, 1);
      builder.metric(program, "loss", total);
    }
    std::vector<float> data;
    for (int i = 0; i < 5; ++i)
      data.insert(data.end(), 2, float(i) / 3);
    writeFile(folder / "d", safetensors(R"({"x":{"dtype":"F32","shape":[5,2],"data_offsets":[0,40]}})", bytesOf(data)));
    options.planPath = folder / "p.dsplan";
    options.data = {folder / "d"};
    options.metrics = folder / "m.jsonl";
  }

  void run() {
    plan::writePlanFile(options.planPath, builder.plan);
    Training training(options, testKernels());
    training.run(recorder, recorder.stop);
  }
  std::vector<nlohmann::json> metrics() {
    std::vector<nlohmann::json> lines;
    for (const std::string &line : readLines(options.metrics))
      lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  TemporaryFolder folder;
  PlanBuilder builder;
  TrainingOptions options;
  Recorder recorder;
};

float sampleSum(int i) { return float(i) / 3 + float(i) / 3; }

TEST_F(TrainingTest, WritesOneLineAStepAndASummary) {
  run(); // one epoch: five samples, two a step
  const auto lines = metrics();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["step"], 1);
  EXPECT_EQ(lines[0]["loss_scale"], 1);
  EXPECT_EQ(lines[0]["skipped"], false);
  EXPECT_TRUE(lines[0]["grad_norm"].is_null());
  EXPECT_TRUE(lines[0]["lr"].is_null());
  EXPECT_GT(lines[0]["step_seconds"].get<double>(), 0);
  EXPECT_GT(lines[0]["samples_per_second"].get<double>(), 0);
  EXPECT_EQ(lines[1]["loss"].get<float>(), sampleSum(2) + sampleSum(3));
  EXPECT_EQ(lines[2]["loss"].get<float>(), sampleSum(4) + sampleSum(0)); // round the end
  const auto &rank = lines[3]["summary"]["ranks"][0];
  EXPECT_EQ(rank["rank"], 0);
  EXPECT_EQ(rank["device_bytes"], builder.plan.roles(0).arenas(0).bytes());
  EXPECT_EQ(rank["device_touched_bytes"], rank["device_bytes"]); // less than a page
  EXPECT_EQ(rank["host_bytes"], 0);
  for (const char *kind : {"all_gather", "reduce_scatter", "all_reduce", "send", "recv"})
    EXPECT_EQ(rank["wire_bytes_per_step"][kind], 0);
  EXPECT_GT(rank["rss_anon_bytes"].get<uint64_t>(), 4096u);
}

TEST_F(TrainingTest, EvaluatesAtIntervalsAndAtTheEnd) {
  options.steps = 5;
  options.evaluationData = options.data;
  options.evaluationInterval = 2;
  run();
  ASSERT_EQ(recorder.evaluations.size(), 3u);
  // The fifth sample fills half a batch: it is taken twice, and counts half.
  const double whole = double(sampleSum(0) + sampleSum(1)) + double(sampleSum(2) + sampleSum(3));
  const double expected = (whole + 0.5 * double(sampleSum(4) + sampleSum(4))) / 2.5;
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(recorder.evaluations[i], std::pair(i == 2 ? uint64_t(5) : 2 * (i + 1), expected));
  EXPECT_EQ(metrics()[2]["eval_loss"].get<double>(), expected);
  EXPECT_EQ(metrics()[2]["step"], 2);
}

TEST_F(TrainingTest, EvaluatesAlone) {
  options.evaluateOnly = true;
  run();
  EXPECT_TRUE(recorder.losses.empty());
  EXPECT_EQ(recorder.evaluations.size(), 1u);
  EXPECT_EQ(metrics().size(), 2u);
}

TEST_F(TrainingTest, ExportsParametersAndPersistentBuffers) {
  options.exportPath = folder / "w.safetensors";
  run();
  const runtime::SafetensorsFile file(options.exportPath);
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.metadata().at("tied"), "p");
  float parameter = 0;
  file.file().read(file.find("p")->offset, std::as_writable_bytes(std::span(&parameter, 1)));
  float expected = 1;
  for (double loss : recorder.losses)
    expected -= float(loss);
  EXPECT_EQ(parameter, expected);
  EXPECT_EQ(file.find("statistics")->dtype, "I64");
  // And back in: training goes on from there.
  recorder.losses.clear();
  options.weights = options.exportPath;
  options.exportPath = folder / "again.safetensors";
  run();
  const runtime::SafetensorsFile again(options.exportPath);
  float after = 0;
  again.file().read(again.find("p")->offset, std::as_writable_bytes(std::span(&after, 1)));
  for (double loss : recorder.losses)
    expected -= float(loss);
  EXPECT_EQ(after, expected);
}

TEST_F(TrainingTest, TracesEveryCommand) {
  builder.implements(*builder.role().mutable_routines(1)->mutable_commands(1), "h.3.sum");
  options.trace = folder / "t.json";
  options.steps = 4;
  run();
  const auto json = nlohmann::json::parse(readFile(options.trace));
  std::map<std::string, int> counts;
  double end = 0;
  for (const auto &event : json["traceEvents"]) {
    if (event["ph"] != "X")
      continue;
    ++counts[event["name"]];
    EXPECT_GE(event["ts"].get<double>(), end); // one queue: one after another
    end = event["ts"].get<double>() + event["dur"].get<double>() - 1e-3;
    if (event["name"] == "sum") {
      EXPECT_EQ(event["args"]["op"], "h.3.sum");
    }
  }
  EXPECT_EQ(counts,
            (std::map<std::string, int>{{"accumulate", 8}, {"feed", 8}, {"fill", 4}, {"subtract", 4}, {"sum", 8}}));
}

TEST_F(TrainingTest, TracesARunThatFails) {
  builder.kernel(2, 0, "fail", "r", {{0, DType::F32, {}}});
  options.trace = folder / "t.json";
  EXPECT_ERROR(run(), "the test asked for it");
  EXPECT_THAT_CONTAINS(readFile(options.trace), "\"name\": \"fail\"");
}

TEST_F(TrainingTest, StopsAfterTheStepAndExportsNothing) {
  recorder.stopAt = 2;
  options.steps = 100;
  options.exportPath = folder / "w.safetensors";
  EXPECT_ERROR(run(), "stopped by a signal after step 2 of 100");
  EXPECT_EQ(metrics().size(), 3u);
  EXPECT_TRUE(metrics()[2].contains("summary"));
  EXPECT_FALSE(std::filesystem::exists(options.exportPath));
}

TEST_F(TrainingTest, GivesTheSameBitsWithChecksAndAnyThreads) {
  options.steps = 20;
  run();
  const auto losses = recorder.losses;
  for (const int threads : {1, 2, 3}) {
    options.threads = threads;
    options.checkMemory = options.checkNumerics = threads == 3;
    recorder.losses.clear();
    run();
    EXPECT_EQ(recorder.losses, losses) << threads;
  }
}

TEST_F(TrainingTest, ShufflesBySeed) {
  options.steps = 20;
  const auto lossesWith = [&](bool shuffle, uint64_t seed) {
    options.shuffle = shuffle;
    options.seed = seed;
    recorder.losses.clear();
    run();
    return recorder.losses;
  };
  EXPECT_EQ(lossesWith(true, 3), lossesWith(true, 3));
  EXPECT_NE(lossesWith(true, 3), lossesWith(true, 4));
  EXPECT_EQ(lossesWith(false, 3), lossesWith(false, 4));
}

TEST_F(TrainingTest, WalksOnTheNullDevice) {
  options.device = "null";
  run();
  EXPECT_EQ(metrics().size(), 4u);
  EXPECT_TRUE(metrics()[0]["loss"].is_null());
}

TEST_F(TrainingTest, RefusesWhatItCannotDo) {
  const auto withOptions = [&](auto change) {
    const TrainingOptions before = options;
    change();
    const std::string error = errorOf([&] { run(); });
    options = before;
    return error;
  };
  EXPECT_THAT_CONTAINS(withOptions([&] { options.ranks = 2; }), "-n 2 does not fit plan");
  EXPECT_THAT_CONTAINS(
      withOptions([&] { options.device = "cuda"; }),
      "so it does not run on cuda; leave --device out to run it on cpu, or compile it for a machine with "
      "device cuda");
  EXPECT_THAT_CONTAINS(withOptions([&] { options.data.clear(); }), "no data file was given");
  EXPECT_THAT_CONTAINS(withOptions([&] { options.metrics = folder / "no/m"; }), "metrics file");
  EXPECT_THAT_CONTAINS(withOptions([&] { options.exportPath = folder / "no/w"; }), "no folder that may be written to");
  EXPECT_THAT_CONTAINS(withOptions([&] { options.trace = folder / "no/t"; }), "no folder that may be written to");
  EXPECT_THAT_CONTAINS(withOptions([&] { options.weights = folder / "none"; }), "none cannot be opened");
  EXPECT_TRUE(!std::filesystem::exists(options.metrics)); // nothing was begun
}

TEST_F(TrainingTest, RefusesAnExportOfWhatIsNotHeld) {
  builder.role().mutable_buffers(0)->clear_variable();
  options.exportPath = folder / "w";
  EXPECT_ERROR(run(), "variable p cannot be exported: no buffer of the plan holds it");
}

TEST_F(TrainingTest, ReportsValuesOutOfRangeAndKeepsTheMetricsSoFar) {
  PlanBuilder b(1, 1);
  const uint32_t compute = b.queue("compute"), ids = b.input("ids", DType::I64, {1, 2});
  b.plan.mutable_inputs(0)->set_limit(10);
  b.feed(b.routine("forward"), compute, ids, b.tensor("ids", DType::I64, {1, 2}, proto::Buffer::CALL));
  b.call(b.program("step"), 0);
  builder = b;
  writeFile(folder / "d", safetensors(R"({"ids":{"dtype":"U8","shape":[3,2],"data_offsets":[0,6]}})",
                                      std::string("\1\2\3\4\5\12", 6)));
  EXPECT_ERROR(run(),
               "the data's sample 2 has value 10 at element 1 of input ids, but values there must be from 0 to 9;");
  EXPECT_EQ(metrics().size(), 2u);
  builder.plan.mutable_inputs(0)->set_ignored(-100);
  EXPECT_ERROR(run(), "values there must be from 0 to 9, or -100, which is ignored; prepare");
}

TEST(Scalar, ReadsBackBitEqual) {
  const auto format = [](DType dtype, double number) {
    std::array<char, 32> text;
    const Scalar scalar{.dtype = dtype, .number = number};
    return std::string(text.data(), scalar.format(text));
  };
  for (uint32_t bits = 1; bits < 0x7F800000u; bits += 9999991) {
    const float value = std::bit_cast<float>(bits);
    EXPECT_EQ(float(std::strtod(format(DType::F32, value).c_str(), nullptr)), value);
  }
  EXPECT_EQ(format(DType::F32, double(0.1f)), "0.1");
  EXPECT_EQ(format(DType::F64, 0.1), "0.1");
  EXPECT_EQ(format(DType::F64, double(0.1f)), "0.10000000149011612");
  EXPECT_EQ(format(DType::F64, NAN), "NaN");
  EXPECT_EQ(format(DType::F32, -INFINITY), "-Infinity");
  EXPECT_EQ((format(DType::F64, 1e300)), "1e+300");
}

} // namespace
} // namespace ds::test
