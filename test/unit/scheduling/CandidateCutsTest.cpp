//===- CandidateCutsTest.cpp - where models fall into stages --------------===//
#include "compiler/scheduling/PipelinePartition.h"
#include "compiler/scheduling/RepeatedBlocks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace ds::scheduling {
namespace {

/// A unit by its name, its time, and the bytes that are live behind it.
struct Op {
  std::string_view name;
  double seconds;
  int64_t live;
};

/// A model in the making; remembers where blocks end.
struct Model {
  PartitionProblem problem;
  std::vector<int64_t> blockEnds;

  Model() { problem.crossing = {0}; }
  void add(std::initializer_list<Op> ops) {
    for (const Op &op : ops) {
      problem.units.push_back({op.seconds, 0, 0, std::hash<std::string_view>()(op.name)});
      problem.crossing.push_back(op.live);
    }
  }
  void addBlock(std::initializer_list<Op> ops) {
    add(ops);
    blockEnds.push_back(int64_t(problem.units.size()));
  }
};

constexpr int64_t h = 1000; // bytes of the residual stream

void addGptBlock(Model &model) {
  model.addBlock({{"norm", .1, 2 * h},
                  {"qkv", 3, 4 * h},
                  {"attention", 1, 2 * h},
                  {"project", 1, 2 * h},
                  {"add", .1, h},
                  {"norm", .1, 2 * h},
                  {"widen", 4, 5 * h},
                  {"gelu", .2, 5 * h},
                  {"narrow", 4, 2 * h},
                  {"add", .1, h}});
}

Model gpt(int blocks, double head) {
  Model model;
  model.add({{"gather", .1, h}, {"gather", .1, 2 * h}, {"add", .1, h}});
  for (int i = 0; i < blocks; ++i)
    addGptBlock(model);
  model.add({{"norm", .1, h}, {"head", head, 50 * h}, {"loss", 1, 4}, {"mean", 0.001, 4}});
  return model;
}

std::vector<int64_t> candidates(const PartitionProblem &problem) {
  EXPECT_EQ(problem.check(), std::nullopt);
  const std::vector<uint8_t> mask = candidateCuts(problem);
  std::vector<int64_t> positions;
  for (size_t i = 1; i + 1 < mask.size(); ++i)
    if (mask[i])
      positions.push_back(int64_t(i));
  return positions;
}

std::vector<int64_t> cutsAtCandidates(PartitionProblem problem) {
  problem.mayCut = candidateCuts(problem);
  const std::optional<Partition> best = partition(problem);
  return best ? best->cuts : std::vector<int64_t>{-1};
}

bool contains(const std::vector<int64_t> &all, int64_t one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

TEST(RepeatedBlocks, FindsThePeriod) {
  // a, then b c three times, then d, one unit a segment.
  const std::vector<uint64_t> units{1, 2, 3, 2, 3, 2, 3, 4};
  const std::vector<int64_t> boundaries{0, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(findRepeatedBlocks(units, boundaries), (std::vector<RepeatedBlocks>{{1, 2, 3}}));
}

TEST(RepeatedBlocks, FirstAndLastBlockMayHaveMore) {
  // [0 1] [2] [1] [2] [1] [2 9]
  const std::vector<uint64_t> units{0, 1, 2, 1, 2, 1, 2, 9};
  const std::vector<int64_t> boundaries{0, 2, 3, 4, 5, 6, 8};
  EXPECT_EQ(findRepeatedBlocks(units, boundaries), (std::vector<RepeatedBlocks>{{0, 2, 3}}));
}

TEST(RepeatedBlocks, SeveralRuns) {
  const std::vector<uint64_t> units{1, 1, 1, 5, 2, 3, 2, 3, 6};
  const std::vector<int64_t> boundaries{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(findRepeatedBlocks(units, boundaries), (std::vector<RepeatedBlocks>{{0, 1, 3}, {4, 2, 2}}));
}

TEST(RepeatedBlocks, NothingRepeats) {
  EXPECT_EQ(findRepeatedBlocks(std::vector<uint64_t>{1, 2, 3, 4}, std::vector<int64_t>{0, 1, 2, 3, 4}),
            std::vector<RepeatedBlocks>{});
  EXPECT_EQ(findRepeatedBlocks({}, {}), std::vector<RepeatedBlocks>{});
}

TEST(CandidateCuts, GptIsCutBetweenBlocks) {
  Model model = gpt(24, 57);
  model.problem.stages = 4;
  std::vector<int64_t> expected = model.blockEnds;
  expected.push_back(expected.back() + 1); // between the last norm and the head
  EXPECT_EQ(candidates(model.problem), expected);
  const std::vector<int64_t> cuts = cutsAtCandidates(model.problem);
  ASSERT_EQ(cuts.size(), 3);
  for (int64_t cut : cuts)
    EXPECT_TRUE(contains(model.blockEnds, cut)) << cut;
}

// Positions inside of blocks are taken in where whole blocks are too few, or too long.
TEST(CandidateCuts, MoreStagesThanBlocks) {
  Model model = gpt(2, 10);
  model.problem.stages = 8;
  const std::vector<int64_t> cuts = cutsAtCandidates(model.problem);
  ASSERT_EQ(cuts.size(), 7);
  model.problem.stages = 17; // of 27 units
  EXPECT_EQ(cutsAtCandidates(model.problem).size(), 16);
}

TEST(CandidateCuts, LargeBlocksAreCutInsideIfThatBalancesBetter) {
  Model model;
  for (int i = 0; i < 3; ++i)
    model.addBlock({{"mix", 5, 2 * h}, {"add", .1, h}, {"widen", 5, 5 * h}, {"add", .1, h}});
  model.problem.stages = 2; // one and a half blocks each
  const std::vector<int64_t> cuts = cutsAtCandidates(model.problem);
  ASSERT_EQ(cuts.size(), 1);
  EXPECT_EQ(model.problem.crossing[size_t(cuts[0])], h);
  EXPECT_FALSE(contains(model.blockEnds, cuts[0]));
}

// Llama's exports prepare cosines and sines in front of the first block; they are live all along.
TEST(CandidateCuts, LlamaWithTablesThatAreLiveAllAlong) {
  constexpr int64_t tables = 64;
  Model model;
  model.add({{"gather", .1, h}, {"cos", .1, h + 32}, {"sin", .1, h + tables}});
  for (int i = 0; i < 24; ++i)
    model.addBlock({{"rms", .1, 2 * h + tables},
                    {"q", 1, 3 * h + tables},
                    {"k", .5, 3 * h + tables},
                    {"rope", .2, 3 * h + tables},
                    {"attention", 1, 2 * h + tables},
                    {"o", 1, 2 * h + tables},
                    {"add", .1, h + tables},
                    {"rms", .1, 2 * h + tables},
                    {"gate", 3, 4 * h + tables},
                    {"up", 3, 7 * h + tables},
                    {"silu", .2, 4 * h + tables},
                    {"down", 3, 2 * h + tables},
                    {"add", .1, h + tables}});
  model.add({{"rms", .1, h}, {"head", 52, 30 * h}, {"loss", .5, 4}});
  model.problem.stages = 4;
  const std::vector<int64_t> cuts = cutsAtCandidates(model.problem);
  ASSERT_EQ(cuts.size(), 3);
  for (int64_t cut : cuts)
    EXPECT_TRUE(contains(model.blockEnds, cut)) << cut;
}

// A loss term of each layer stays alive, so each block sends four bytes more than the last.
TEST(CandidateCuts, SlowlyGrowingBytes) {
  Model model;
  model.add({{"gather", .1, h}});
  for (int64_t i = 0; i < 12; ++i)
    model.addBlock({{"norm", .1, 2 * h + 4 * i},
                    {"attention", 4, 2 * h + 4 * i},
                    {"add", .1, h + 4 * i},
                    {"norm", .1, 2 * h + 4 * i},
                    {"experts", 8, 2 * h + 4 * i},
                    {"aux", .1, 2 * h + 4 * i + 4},
                    {"add", .1, h + 4 * i + 4}});
  model.add({{"head", 5, 20 * h}, {"loss", 1, 4}});
  model.problem.stages = 4;
  EXPECT_EQ(candidates(model.problem), model.blockEnds);
}

// Each group of blocks has half the bytes of the one before.
TEST(CandidateCuts, ResNetShrinks) {
  Model model;
  int64_t bytes = 1600;
  model.add({{"conv", 4, bytes}, {"relu", .5, bytes}, {"pool", .5, bytes / 4}});
  bytes /= 4;
  for (int group = 0; group < 4; ++group) {
    for (int i = 0; i < std::vector<int>{3, 4, 6, 3}[size_t(group)]; ++i) {
      const int64_t shortcut = bytes, out = i == 0 && group > 0 ? bytes / 2 : bytes;
      const std::string size = std::to_string(out);
      model.addBlock({{"reduce" + size, 1, shortcut + out / 4},
                      {"conv" + size, 2, shortcut + out / 4},
                      {"expand" + size, 1, shortcut + out},
                      {"add" + size, .2, out}});
      bytes = out;
    }
  }
  model.add({{"mean", .1, 4}, {"fc", .1, 2}, {"loss", .01, 1}});
  for (int64_t stages : {2, 4, 8}) {
    model.problem.stages = stages;
    const std::vector<int64_t> cuts = cutsAtCandidates(model.problem);
    ASSERT_EQ(int64_t(cuts.size()), stages - 1);
    for (int64_t cut : cuts)
      EXPECT_TRUE(contains(model.blockEnds, cut)) << stages << " stages, cut at " << cut;
  }
}

// BERT normalizes behind the addition, and its embeddings as its blocks do.
TEST(CandidateCuts, BertIsCutBetweenBlocks) {
  Model model;
  model.add({{"gather", .1, h}, {"gather", .1, 2 * h}, {"add", .1, h}, {"norm", .1, h}});
  for (int i = 0; i < 24; ++i)
    model.addBlock({{"qkv", 3, 4 * h},
                    {"attention", 1, 2 * h},
                    {"project", 1, 2 * h},
                    {"add", .1, h},
                    {"norm", .1, h},
                    {"widen", 4, 5 * h},
                    {"gelu", .2, 5 * h},
                    {"narrow", 4, 2 * h},
                    {"add", .1, h},
                    {"norm", .1, h}});
  model.add({{"dense", 1, h}, {"gelu", .1, h}, {"head", 52, 30 * h}, {"loss", 1, 4}});
  model.problem.stages = 4;
  for (int64_t cut : cutsAtCandidates(model.problem))
    EXPECT_TRUE(contains(model.blockEnds, cut)) << cut;
}

// Nothing repeats and nothing stays equal: still a cut, no worse than a quarter above the best.
TEST(CandidateCuts, UnstructuredGraphs) {
  std::mt19937 random(3);
  for (int i = 0; i < 50; ++i) {
    Model model;
    const int units = 40 + int(random() % 200);
    for (int j = 0; j < units; ++j) {
      const auto time = double(random() % 100);
      const auto live = int64_t(random() % 1000), kind = int64_t(random() % 5);
      model.add({{std::to_string(kind), time, live}});
    }
    model.problem.stages = int64_t(2 + random() % 15);
    const std::optional<Partition> best = partition(model.problem);
    PartitionProblem narrowed = model.problem;
    narrowed.mayCut = candidateCuts(model.problem);
    const std::optional<Partition> found = partition(narrowed);
    ASSERT_TRUE(best && found);
    EXPECT_EQ(verify(narrowed, *found), std::nullopt);
    EXPECT_LE(found->bottleneck, 1.25 * best->bottleneck);
  }
}

// Whole blocks may cost 5 %, not more: three blocks and a head of one and a half are cut inside of the third.
TEST(CandidateCuts, WholeBlocksMayCostLittle) {
  Model model = gpt(3, 20);
  model.problem.stages = 2;
  const std::vector<int64_t> cuts = cutsAtCandidates(model.problem);
  ASSERT_EQ(cuts.size(), 1);
  EXPECT_EQ(model.problem.crossing[size_t(cuts[0])], h);
  EXPECT_FALSE(contains(model.blockEnds, cuts[0]));
}

// A chain that sends the same bytes everywhere is cut between its repeated blocks, too.
TEST(CandidateCuts, PlainChain) {
  Model model;
  for (int i = 0; i < 11; ++i)
    model.addBlock({{"linear", 4, h}, {"relu", 1, h}});
  model.add({{"linear", 4, h}, {"loss", 1, 4}});
  model.problem.stages = 4;
  for (int64_t cut : cutsAtCandidates(model.problem))
    EXPECT_TRUE(contains(model.blockEnds, cut)) << cut;
}

TEST(CandidateCuts, KeepsToWhatIsAllowed) {
  Model model = gpt(8, 10);
  model.problem.stages = 4;
  model.problem.mayCut.assign(model.problem.units.size() + 1, 1);
  model.problem.mayCut[size_t(model.blockEnds[1])] = 0;
  EXPECT_FALSE(contains(candidates(model.problem), model.blockEnds[1]));
}

// Where no partition exists, all that is allowed is left.
TEST(CandidateCuts, NoPartition) {
  Model model = gpt(1, 1);
  model.problem.stages = 100;
  EXPECT_EQ(candidates(model.problem).size(), model.problem.units.size() - 1);
  EXPECT_EQ(candidateCuts(model.problem).front() + candidateCuts(model.problem).back(), 0); // the ends are no cuts
}

} // namespace
} // namespace ds::scheduling
