//===- TensorRanksTest.cpp - runs whose parameters tensor ranks share -------===//
//
// Each run is that of two data ranks alone, whatever the cut: by weights, samples, checkpoints and exports.
//
//===----------------------------------------------------------------------===//
#include "test/unit/runtime/CutPlan.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanRun.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

const std::vector<Cut> cuts = {{2, 0, 1}, {2, 0, 2}, {4, 0, 1}, {2, 1, 1}, {2, 1, 3}, {3, 1, 2}};

std::string nameOf(const Cut &cut) {
  return std::to_string(cut.tensorRanks) + " ranks along dimension " + std::to_string(cut.dim) + ", runs " +
         std::to_string(cut.runs);
}

/// Where w begins: in the model's file, or drawn from the run's seed by the number of the element in the whole.
const std::vector<std::pair<std::string, std::function<void(PlanBuilder &, const std::string &)>>> beginnings = {
    {"file", takeFromFile},
    {"random",
     [](PlanBuilder &builder, const std::string &) {
       auto &random = *builder.plan.mutable_variables(0)->mutable_source()->mutable_random();
       random.set_distribution("normal");
       random.set_deviation(1);
     }},
    {"fill", [](PlanBuilder &, const std::string &) {}},
};

class TensorRanks : public PlanRun {
protected:
  TensorRanks() {
    writeCutData(folder / "x");
    options.data = {folder / "x"};
    options.replicaDigestInterval = 1;
    options.metrics.clear();
  }

  /// The bytes of the export of `steps` steps.
  std::string exported(const Cut &cut, uint64_t steps, const std::string &beginning = "file") {
    PlanBuilder builder = cutPlan(cut);
    for (const auto &[name, begin] : beginnings)
      if (name == beginning)
        begin(builder, folder.path());
    options.steps = steps;
    return run(builder).second;
  }
};

TEST_F(TensorRanks, AreTheRunOfWholeParameters) {
  for (const auto &[beginning, begin] : beginnings) {
    const std::string whole = exported({}, 4, beginning);
    for (const Cut &cut : cuts)
      EXPECT_EQ(exported(cut, 4, beginning), whole) << beginning << ", " << nameOf(cut);
  }
}

TEST_F(TensorRanks, TakeTheirPiecesOfGivenWeights) {
  exported({}, 3);
  options.weights = folder / "given.safetensors";
  std::filesystem::copy_file(options.exportPath, options.weights);
  const std::string whole = exported({}, 4, "fill");
  for (const Cut &cut : cuts)
    EXPECT_EQ(exported(cut, 4, "fill"), whole) << nameOf(cut);
}

/// And on as many data ranks without tensor ranks.
TEST_F(TensorRanks, GoOnFromEachOthersCheckpoints) {
  const std::string whole = exported({}, 4);
  std::vector<Cut> layouts = cuts;
  layouts.push_back({});
  for (const Cut &from : layouts) {
    std::filesystem::remove_all(folder / "s");
    options.resume.clear();
    options.saving = {.folder = folder / "s", .interval = 0, .keep = 0};
    exported(from, 2);
    options.saving = {};
    options.resume = folder / "s";
    for (const Cut &to : layouts)
      EXPECT_EQ(exported(to, 4), whole) << "from " << nameOf(from) << " to " << nameOf(to);
  }
}

} // namespace
} // namespace ds::test
