//===- PictureTest.cpp - columns and rectangles of a program --------------===//
#include "compiler/report/figures/Picture.h"
#include "runtime/plan/run/ProgramLives.h"
#include "test/unit/report/SmallPlan.h"

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using namespace plan::proto;

std::vector<uint64_t> totals(const std::vector<Column> &columns) {
  std::vector<uint64_t> bytes;
  for (const Column &column : columns)
    bytes.push_back(column.total);
  return bytes;
}

const Tile *tileOf(const ArenaPicture &picture, int buffer, uint32_t slot = 0) {
  for (const Tile &tile : picture.tiles)
    if (tile.buffer == buffer && tile.slot == slot)
      return &tile;
  return nullptr;
}

// The table of SmallPlan.h.
TEST(Picture, AColumnForEachCommand) {
  const Plan plan = smallPlan();
  const std::vector<Column> columns = columnsOf(plan::ProgramLives(plan.roles(0), 0, "device"), 100);
  EXPECT_EQ(totals(columns), (std::vector<uint64_t>{2560, 4608, 5120, 7168, 8192, 10240, 5632, 7680, 3072}));
  EXPECT_EQ(columns[5].call, 2);
  EXPECT_EQ(columns[5].command, 1);
  EXPECT_EQ(columns[5].bytes[Buffer::WORKSPACE], 4096u);
  EXPECT_EQ(columns[5].bytes[Buffer::ACTIVATIONS], 2048u);
}

TEST(Picture, AColumnOfSeveralCommandsShowsTheFullest) {
  const Plan plan = smallPlan();
  EXPECT_EQ(totals(columnsOf(plan::ProgramLives(plan.roles(0), 0, "device"), 3)),
            (std::vector<uint64_t>{5120, 10240, 7680})); // 9 commands, 3 a column
}

// An arena of 12,288 bytes on 1,200 tenths, 9 commands on 900.
TEST(Picture, TilesByEye) {
  const Plan plan = smallPlan();
  const plan::ProgramLives lives(plan.roles(0), 0, "device");
  const ArenaPicture picture = arenaPicture(plan.roles(0), "device", lives, 900, 1200, 100);
  ASSERT_EQ(picture.tiles.size(), 2u + 1 + 2 + 2 + 2); // w m, g, x and h in two slots, scratch twice
  EXPECT_EQ(picture.thin, 0u);
  const Tile &g = *tileOf(picture, 2), &h = *tileOf(picture, 4, 1), &scratch = *tileOf(picture, 5);
  EXPECT_EQ(std::pair(g.x, g.width), std::pair(Tenths(400), Tenths(500))); // from command 4 to the end
  EXPECT_EQ(std::pair(g.y, g.height), std::pair(Tenths(1200 - 300), Tenths(100)));
  EXPECT_EQ(std::pair(h.x, h.width), std::pair(Tenths(300), Tenths(400))); // forward 1 of micro-batch 1 to backward 0
  EXPECT_EQ(std::pair(h.y, h.height), std::pair(Tenths(1200 - 800), Tenths(200)));
  EXPECT_EQ(std::pair(scratch.x, scratch.width), std::pair(Tenths(500), Tenths(100)));
}

// On 54 tenths the two lives of scratch are 6 apart.
TEST(Picture, LivesLessThanAPixelApartAreOne) {
  const Plan plan = smallPlan();
  const plan::ProgramLives lives(plan.roles(0), 0, "device");
  const ArenaPicture picture = arenaPicture(plan.roles(0), "device", lives, 54, 1200, 100);
  const Tile *scratch = tileOf(picture, 5);
  ASSERT_TRUE(scratch);
  EXPECT_EQ(scratch->times, 2u);
  EXPECT_EQ(scratch->first, 5);
  EXPECT_EQ(scratch->last, 7);
}

// 50 tenths for 12,288 bytes: x of 512 bytes is 2 tenths high.
TEST(Picture, WhatIsThinnerThanAPixelIsMerged) {
  const Plan plan = smallPlan();
  const plan::ProgramLives lives(plan.roles(0), 0, "device");
  const ArenaPicture picture = arenaPicture(plan.roles(0), "device", lives, 900, 50, 100);
  EXPECT_EQ(picture.tiles.size(), 2u); // scratch, twice: 16 tenths
  EXPECT_EQ(picture.thin, 7u);
  ASSERT_FALSE(picture.smudges.empty());
  for (const Smudge &smudge : picture.smudges) {
    EXPECT_GE(smudge.x, 0);
    EXPECT_LE(smudge.x + smudge.width, 900);
    EXPECT_LE(smudge.y + smudge.height, 50);
  }
}

// The more there is, the coarser; never more than was asked for.
TEST(Picture, ManyBuffersStayFew) {
  Plan plan = smallPlan();
  Role &role = *plan.mutable_roles(0);
  role.mutable_arenas(0)->set_bytes(64 * 20000);
  for (int i = 0; i < 20000; ++i) {
    Buffer buffer = role.buffers(5); // scratch
    buffer.set_category(i % 2 ? Buffer::WORKSPACE : Buffer::ACTIVATIONS);
    buffer.set_offset(uint64_t(i) * 64);
    buffer.set_bytes(64);
    *role.add_buffers() = buffer;
  }
  const plan::ProgramLives lives(role, 0, "device");
  for (Tenths height : {3200, 400000}) {
    const ArenaPicture picture = arenaPicture(role, "device", lives, 9600, height, 500);
    EXPECT_LE(picture.tiles.size(), 500u);
    EXPECT_LE(picture.smudges.size(), 500u);
    EXPECT_GE(picture.thin, 39000u);
  }
}

TEST(Picture, OtherSpacesAreEmpty) {
  const Plan plan = smallPlan();
  const plan::ProgramLives lives(plan.roles(0), 0, "host");
  EXPECT_TRUE(arenaPicture(plan.roles(0), "host", lives, 900, 900, 10).tiles.empty());
  EXPECT_EQ(totals(columnsOf(lives, 100)), std::vector<uint64_t>(9));
}

} // namespace
} // namespace ds::report
