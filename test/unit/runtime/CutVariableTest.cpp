//===- CutVariableTest.cpp - checkpoints of variables that shards cut -----===//
#include "core/DType.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/RankFile.h"
#include "runtime/checkpoint/SavedWeights.h"
#include "runtime/checkpoint/StateShares.h"
#include "runtime/checkpoint/StoredState.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Placement.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace ds::test {
namespace {

using runtime::HeldPart;
using runtime::Manifest;

constexpr uint64_t elements = 4 * 12; // of w
constexpr uint32_t ranks = 4;         // two along axis data by two along axis tensor

proto::Shard &cutBy(proto::Placement &placement, uint32_t axis, uint32_t dimension) {
  proto::AxisPlacement &along = *placement.add_axes();
  along.set_axis(axis);
  along.mutable_shard()->set_dimension(dimension);
  along.mutable_shard()->set_repeat(1);
  return *along.mutable_shard();
}

void addBlock(proto::Shard &shard, uint64_t offset, uint64_t size) {
  proto::Block &block = *shard.add_blocks();
  block.set_offset(offset);
  block.set_stride(size);
  block.set_size(size);
}

/// What ranks have of w [4, 12], and whether those along axis data share it out flat.
struct Layout {
  std::string name;
  std::function<void(proto::Placement &)> place;
  bool windows = false;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const Layout &layout, std::ostream *out) { *out << layout.name; }

const std::vector<Layout> layouts = {
    {"Whole", [](proto::Placement &) {}},
    {"Rows", [](proto::Placement &w) { addBlock(cutBy(w, 1, 0), 0, 2); }},
    {"Columns", [](proto::Placement &w) { addBlock(cutBy(w, 1, 1), 0, 6); }},
    {"ColumnsOfThreeBlocks", // the last block first
     [](proto::Placement &w) {
       proto::Shard &shard = cutBy(w, 1, 1);
       for (const uint64_t first : {8, 0, 4})
         addBlock(shard, first, 2);
     }},
    {"RowsAndColumns",
     [](proto::Placement &w) {
       addBlock(cutBy(w, 0, 0), 0, 2);
       addBlock(cutBy(w, 1, 1), 0, 6);
     }},
    {"NeighboursAlike",
     [](proto::Placement &w) {
       addBlock(cutBy(w, 0, 1), 0, 6);
       proto::Shard &shard = cutBy(w, 1, 1);
       shard.set_repeat(2);
       addBlock(shard, 0, 6);
     }},
    {"WindowsOfColumns", [](proto::Placement &w) { addBlock(cutBy(w, 1, 1), 0, 6); }, true},
};

proto::Plan planOf(const Layout &layout) {
  PlanBuilder b;
  b.ranks(2);
  proto::Axis &tensor = *b.plan.mutable_world()->add_axes();
  tensor.set_name("tensor");
  tensor.set_size(2);
  b.role().set_ranks(1, ranks - 1);
  const uint32_t w = b.bareVariable("w", DType::F32, {4, 12}, 0);
  proto::Variable &variable = *b.plan.mutable_variables(int(w));
  layout.place(*variable.mutable_placement());
  if (layout.windows) {
    const uint32_t bucket = b.bucket("weights", {w}, 1);
    b.plan.mutable_buckets(int(bucket))->set_elements(plan::pieceElements(variable));
    b.bucketTensor(bucket, true);
    return b.plan;
  }
  const auto held = b.tensor("w", DType::F32, {int64_t(plan::pieceElements(variable))}, proto::Buffer::PLAN);
  b.role().mutable_buffers(int(held.buffer))->set_variable(w);
  return b.plan;
}

/// The bytes of a part of w, whose elements are their own numbers.
std::string bytesOfPart(const proto::Plan &plan, uint32_t rank, const HeldPart &part) {
  std::vector<float> values;
  for (const plan::Run &run : plan::wholeElements(plan, plan.variables(0), rank, part.first, part.count))
    for (uint64_t i = 0; i < run.count; ++i)
      values.push_back(float(run.first + i));
  return bytesOf(values);
}

/// Writes a checkpoint of a plan into a folder.
Manifest save(const proto::Plan &plan, const std::string &folder) {
  const runtime::StateShares shares = runtime::shareState(plan);
  Manifest manifest{.deepstatic = "test", .variables = shares.variables};
  manifest.layout = {.ranks = ranks, .world = plan.world()};
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::string bytes;
    for (const HeldPart &part : shares.parts[rank])
      bytes += bytesOfPart(plan, rank, part);
    std::span<const std::byte> left = std::as_bytes(std::span(bytes));
    const auto next = [&](uint64_t most) {
      const auto taken = left.first(std::min<size_t>(most, left.size()));
      left = left.subspan(taken.size());
      return taken;
    };
    manifest.files.push_back(runtime::writeRankFile(folder, rank, plan, shares.parts[rank], next));
  }
  writeFile(folder + "/manifest.json", runtime::manifestText(manifest));
  return runtime::readManifest(folder + "/manifest.json");
}

std::vector<float> numbers() {
  std::vector<float> values(elements);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

class CutVariable : public testing::TestWithParam<Layout> {
protected:
  TemporaryFolder folder;
  const Manifest saved = save(planOf(GetParam()), folder.path());
};

TEST_P(CutVariable, IsReadOnEveryOtherLayout) {
  for (const Layout &other : layouts) {
    const proto::Plan plan = planOf(other);
    const runtime::StoredState state(folder.path(), saved, plan, std::vector<uint32_t>{0, 1, 2, 3});
    const runtime::VariableSources sources(plan, {.planFolder = "", .weightsPath = "", .stored = &state.variables()});
    for (uint32_t rank = 0; rank < ranks; ++rank)
      for (const HeldPart &part : runtime::heldParts(plan, rank)) {
        uint64_t next = part.first;
        sources.read(0, part.first, part.count, [&](std::span<const std::byte> bytes) {
          std::vector<float> values(bytes.size() / sizeof(float));
          std::memcpy(values.data(), bytes.data(), bytes.size());
          for (const float value : values)
            EXPECT_EQ(value, float(next++)) << other.name << ", rank " << rank;
        });
        EXPECT_EQ(next, part.first + part.count);
      }
  }
}

/// A rank alone takes no more than it holds.
TEST_P(CutVariable, IsReadByOneRank) {
  const proto::Plan plan = planOf(GetParam());
  const runtime::StoredState state(folder.path(), saved, plan, std::vector<uint32_t>{3});
  uint64_t held = 0, stored = 0;
  for (const HeldPart &part : runtime::heldParts(plan, 3))
    held += part.count;
  for (const auto &piece : state.variables().pieces.at({0, 0}))
    stored += piece.end - piece.begin;
  EXPECT_EQ(stored, held);
}

TEST_P(CutVariable, IsExportedWhole) {
  const runtime::SavedWeights weights(folder.path());
  std::string bytes;
  weights.read(weights.tensors().at(0), 0, elements, [&](std::span<const std::byte> piece) {
    bytes.append(reinterpret_cast<const char *>(piece.data()), piece.size());
  });
  EXPECT_EQ(bytes, bytesOf(numbers()));
}

/// However many rows it has.
TEST_P(CutVariable, IsOneTensorOfItsShapeInEachRanksFile) {
  const proto::Plan plan = planOf(GetParam());
  const proto::Variable &variable = plan.variables(0);
  const uint64_t parts = plan::partsOf(plan.world(), variable.placement());
  EXPECT_EQ(saved.variables[0].versions[0].size(), parts * (GetParam().windows ? 2 : 1));
  for (const Manifest::Piece &piece : saved.variables[0].versions[0]) {
    const runtime::SafetensorsFile file(folder / piece.file);
    const runtime::SafetensorsFile::Tensor *tensor = file.find(piece.tensor);
    ASSERT_NE(tensor, nullptr) << piece.tensor;
    const Shape flat = {int64_t(piece.end - piece.begin)};
    EXPECT_EQ(tensor->shape, GetParam().windows ? flat : plan::pieceShape(variable.placement(), Shape{4, 12}));
    EXPECT_EQ(piece.tensor.starts_with("w#"), parts > 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, CutVariable, testing::ValuesIn(layouts),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace ds::test
