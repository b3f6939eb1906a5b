//===- PartitionMethodTest.cpp - what stages share evenly -----------------===//
#include "compiler/scheduling/PartitionMethod.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace ds::scheduling {
namespace {

using Kind = PartitionMethod::Kind;

/// An embedding, four blocks of two units, a head; the second half takes five times as long.
PartitionProblem model() {
  PartitionProblem problem;
  problem.units = {{1, 0, 0, 7}};
  problem.crossing = {0, 10};
  for (int i = 0; i < 4; ++i) {
    const double seconds = i < 2 ? 1 : 5;
    problem.units.push_back({seconds, 0, 0, 8});
    problem.units.push_back({seconds, 0, 0, 9});
    problem.crossing.insert(problem.crossing.end(), {30, 10});
  }
  problem.units.push_back({1, 0, 0, 6});
  problem.crossing.push_back(0);
  problem.stages = 2;
  return problem;
}

std::vector<int64_t> cutsFor(Kind kind, const std::vector<int64_t> &parameterBytes = {},
                             const std::vector<std::string> &layers = {}) {
  PartitionProblem problem = model();
  problem.mayCut = candidateCuts(problem);
  const std::vector<double> weights = weightsToBalance(kind, problem, parameterBytes, layers);
  for (size_t i = 0; i < weights.size(); ++i)
    problem.units[i].seconds = weights[i];
  const std::optional<Partition> best = partition(problem);
  return best ? best->cuts : std::vector<int64_t>{-1};
}

TEST(PartitionMethod, Names) {
  EXPECT_EQ(PartitionMethod::fromName("best")->kind, Kind::Best);
  EXPECT_EQ(PartitionMethod::fromName("uniform")->kind, Kind::Uniform);
  EXPECT_EQ(PartitionMethod::fromName("parameters")->kind, Kind::Parameters);
  EXPECT_EQ(PartitionMethod::fromName("type:h\\.[0-9]+")->pattern, "h\\.[0-9]+");
  for (const char *name : {"", "type:", "type", "Best", "profile"})
    EXPECT_FALSE(PartitionMethod::fromName(name)) << name;
}

TEST(PartitionMethod, LayersAreBlocksAndWhatIsAround) {
  EXPECT_EQ(layerBegins(model()), (std::vector<int64_t>{0, 1, 3, 5, 7, 9}));
}

TEST(PartitionMethod, LogitsHideNoLayers) {
  // In 16 bits what logits are made of is half as wide as the blocks' ends, and the product takes longer than all else.
  PartitionProblem problem = model();
  for (PartitionProblem::Unit &unit : problem.units)
    unit.seconds = 1;
  problem.units.back() = {.5, 0, 0, 5}; // a norm
  problem.units.push_back({12, 0, 0, 6});
  problem.units.push_back({.5, 0, 0, 4}); // the loss
  problem.crossing.back() = 5;
  problem.crossing.insert(problem.crossing.end(), {100, 0});
  problem.stages = 1;
  EXPECT_EQ(layerBegins(problem), (std::vector<int64_t>{0, 10, 11})) << "compared with all positions";
  EXPECT_EQ(layerBeginsOfModel(problem), (std::vector<int64_t>{0, 1, 3, 5, 7, 10}));
}

TEST(PartitionMethod, BestBalancesTime) { EXPECT_EQ(cutsFor(Kind::Best), (std::vector<int64_t>{7})); }

TEST(PartitionMethod, UniformBalancesLayers) { EXPECT_EQ(cutsFor(Kind::Uniform), (std::vector<int64_t>{5})); }

TEST(PartitionMethod, ParametersBalancesTheirBytes) {
  EXPECT_EQ(cutsFor(Kind::Parameters, {90, 10, 10, 10, 10, 10, 10, 10, 10, 0}), (std::vector<int64_t>{1}));
}

TEST(PartitionMethod, TypeBalancesMatchingLayers) {
  EXPECT_EQ(cutsFor(Kind::Type, {}, {"", "a", "a", "", "", "", "", "b", "b", ""}), (std::vector<int64_t>{3}));
  EXPECT_EQ(weightsToBalance(Kind::Type, model(), {}, std::vector<std::string>(10)), std::vector<double>(10, 0));
}

// A model of one layer is shared out by its units.
TEST(PartitionMethod, UniformWithoutLayers) {
  PartitionProblem problem;
  problem.units.assign(4, {1, 0, 0, 0});
  problem.crossing = {0, 1000, 100, 10, 1};
  problem.stages = 4;
  EXPECT_EQ(weightsToBalance(Kind::Uniform, problem, {}, {}), std::vector<double>(4, 1));
}

} // namespace
} // namespace ds::scheduling
