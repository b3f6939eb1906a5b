//===- Picture.h - what a picture of a program's memory is drawn from -----===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/ProgramLives.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ds::report {

/// Instants that share a column of the picture, by the one of them with the most bytes alive.
struct Column {
  int call = 0, command = 0;
  plan::CategoryBytes bytes{};
  uint64_t total = 0;
};

/// The program in at most `most` columns of equal numbers of instants, give or take one.
std::vector<Column> columnsOf(const plan::ProgramLives &lives, size_t most);

/// Where column i of `columns` begins on an axis of `length`.
int64_t columnBegin(int64_t i, int64_t columns, int64_t length);

/// A size or a place in tenths of a pixel.
using Tenths = int64_t;
inline constexpr Tenths pixel = 10;

/// A copy of a buffer in the arena. Time goes to the right, addresses go up: y counts from the arena's end.
struct Tile {
  int buffer = 0; // Role.buffers
  uint32_t slot = 0;
  int64_t first = 0, last = 0; // instants
  uint64_t times = 1;          // lives that are drawn as one, for less than a pixel lies between them
  Tenths x = 0, y = 0, width = 0, height = 0;
};

/// Cells of a grid that belong to tiles too thin to be seen.
struct Smudge {
  plan::proto::Buffer::Category category{};
  Tenths x = 0, y = 0, width = 0, height = 0;
};

struct ArenaPicture {
  std::vector<Tile> tiles;     // by address, then by time
  std::vector<Smudge> smudges; // to be drawn first
  uint64_t thin = 0;           // lives that went into them
  Tenths least = pixel;        // tiles that are less high or wide went into them
};

/// The arenas of a space, one above the other, over a program. Whatever the plan's size, at most `most` tiles and as
/// many smudges: the larger it is, the coarser.
ArenaPicture arenaPicture(const plan::proto::Role &role, std::string_view space, const plan::ProgramLives &lives,
                          Tenths width, Tenths height, size_t most);

} // namespace ds::report
