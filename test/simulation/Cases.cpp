//===- Cases.cpp - the small plans that are simulated ---------------------===//
#include "test/simulation/Cases.h"

#include "core/DType.h"
#include "runtime/data/InputSpec.h"
#include "runtime/plan/world/Mesh.h"
#include "test/unit/runtime/PipelinePlan.h"
#include "test/unit/runtime/ShardedPlan.h"

#include <filesystem>
#include <unistd.h>

namespace ds::sim {
namespace {

void add(std::vector<Case> &cases, std::string name, const test::PlanBuilder &builder, const std::string &data) {
  Case &made = cases.emplace_back();
  made.name = std::move(name);
  made.plan = builder.plan;
  made.ranks = uint32_t(plan::worldSize(made.plan));
  made.data = std::make_unique<runtime::Dataset>(
      std::vector<runtime::InputSpec>{{.name = "x", .dtype = DType::F32, .sampleShape = {5}}},
      std::vector<std::string>{data}, runtime::Dataset::Order{});
}

} // namespace

std::vector<Case> makeCases() {
  std::string folder = (std::filesystem::temp_directory_path() / "ds-simulation-XXXXXX").string();
  folder = ::mkdtemp(folder.data());
  const std::string data = folder + "/data";
  test::writeShardedData(data);
  std::vector<Case> cases;
  const auto text = [](const char *kind, uint32_t ranks, uint32_t microbatches) {
    return std::string(kind) + ", " + std::to_string(ranks) + " ranks, " + std::to_string(microbatches) +
           (microbatches == 1 ? " micro-batch" : " micro-batches");
  };
  for (const uint32_t ranks : {2, 3, 4, 8})
    for (const uint32_t microbatches : {1, 3})
      add(cases, text("sharded", ranks, microbatches), test::shardedPlan(ranks, microbatches), data);
  for (const uint32_t dataRanks : {1, 2, 3})
    for (const uint32_t microbatches : {1, 3, 4})
      add(cases, text("pipeline", 2 * dataRanks, microbatches), test::pipelinePlan(microbatches, dataRanks), data);
  std::filesystem::remove_all(folder); // the data sets have it open
  for (Case &made : cases)
    made.sources = std::make_unique<runtime::VariableSources>(
        made.plan, runtime::VariableSources::Options{.planFolder = "", .weightsPath = "", .seed = 3});
  return cases;
}

} // namespace ds::sim
