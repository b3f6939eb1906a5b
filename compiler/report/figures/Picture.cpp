//===- Picture.cpp - what a picture of a program's memory is drawn from ---===//
#include "compiler/report/figures/Picture.h"

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/ProgramLives.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Buffer;
using plan::proto::Role;

constexpr Tenths onePixel = 10;

/// part / whole of length, rounded down; exact for any 64-bit numbers.
Tenths scaled(uint64_t part, uint64_t whole, Tenths length) {
  return whole == 0 ? 0 : Tenths(static_cast<unsigned __int128>(part) * uint64_t(length) / whole);
}

/// Where tiles of a space lie.
class Canvas {
public:
  Canvas(const Role &role, std::string_view space, int64_t instants, Tenths width, Tenths height)
      : role_(role), instants_(uint64_t(std::max<int64_t>(instants, 1))), width_(width), height_(height) {
    for (const plan::proto::Arena &arena : role.arenas()) {
      bases_.push_back(bytes_);
      if (arena.space() == space)
        bytes_ += arena.bytes();
    }
  }

  void place(Tile &tile) const {
    const Buffer &buffer = role_.buffers(tile.buffer);
    const uint64_t address = bases_[buffer.arena()] + plan::slotOffset(buffer, tile.slot);
    tile.x = scaled(uint64_t(tile.first), instants_, width_);
    tile.width = scaled(uint64_t(tile.last) + 1, instants_, width_) - tile.x;
    const Tenths bottom = scaled(address, bytes_, height_), top = scaled(address + buffer.bytes(), bytes_, height_);
    tile.y = height_ - top;
    tile.height = top - bottom;
  }

private:
  const Role &role_;
  uint64_t instants_, bytes_ = 0;
  Tenths width_, height_;
  std::vector<uint64_t> bases_; // of each arena among those of its space
};

/// Makes one tile of two copies of a buffer in one slot with less than a pixel between them, or returns false.
bool merge(Tile &before, const Tile &after) {
  if (before.buffer != after.buffer || before.slot != after.slot || after.x - (before.x + before.width) >= onePixel)
    return false;
  before.last = std::max(before.last, after.last);
  before.width = std::max(before.width, after.x + after.width - before.x);
  before.times += after.times;
  return true;
}

/// Lives that follow each other closely as one; a buffer's slots are visited in turn, so each has its last tile.
std::vector<Tile> tilesOf(const Role &role, std::string_view space, const plan::ProgramLives &lives,
                          const Canvas &canvas) {
  std::vector<Tile> tiles;
  for (int i = 0; i < role.buffers_size(); ++i)
    if (plan::isIn(role, role.buffers(i), space) && role.buffers(i).scope() == Buffer::PLAN)
      canvas.place(tiles.emplace_back(Tile{.buffer = i, .last = std::max<int64_t>(lives.instants(), 1) - 1}));
  std::map<uint32_t, size_t> lastOfSlot; // of the buffer that is being visited
  int visited = -1;
  lives.forEachStretch([&](const plan::Stretch &stretch) {
    if (std::exchange(visited, stretch.buffer) != stretch.buffer)
      lastOfSlot.clear();
    Tile tile{.buffer = stretch.buffer, .slot = stretch.slot, .first = stretch.first, .last = stretch.last};
    canvas.place(tile);
    const auto [last, fresh] = lastOfSlot.try_emplace(stretch.slot, tiles.size());
    if (!fresh && merge(tiles[last->second], tile))
      return;
    last->second = tiles.size();
    tiles.push_back(tile);
  });
  return tiles;
}

/// A grid over the picture: each cell has the category of the largest thin tile in it.
class Grid {
public:
  Grid(Tenths cell, Tenths width, Tenths height)
      : cell_(cell), columns_((width + cell - 1) / cell), rows_((height + cell - 1) / cell),
        cells_(size_t(columns_ * rows_)) {}

  void add(const Tile &tile, Buffer::Category category) {
    const Tenths area = tile.width * tile.height;
    for (int64_t row = tile.y / cell_; row < rows_ && row * cell_ < std::max(tile.y + tile.height, tile.y + 1); ++row)
      for (int64_t column = tile.x / cell_;
           column < columns_ && column * cell_ < std::max(tile.x + tile.width, tile.x + 1); ++column) {
        auto &[best, owner] = cells_[size_t(row * columns_ + column)];
        if (owner == Buffer::CATEGORY_UNSPECIFIED || area > best) {
          best = area;
          owner = category;
        }
      }
  }

  /// Runs of cells of one category; equal runs of rows that follow each other are one.
  std::vector<Smudge> smudges() const {
    std::vector<Smudge> result;
    std::map<std::tuple<int64_t, int64_t, int>, size_t> above, here; // column, length, category -> smudge
    for (int64_t row = 0; row < rows_; ++row, std::swap(above, here)) {
      here.clear();
      for (int64_t begin = 0, end; begin < columns_; begin = end) {
        const Buffer::Category category = at(row, begin);
        for (end = begin + 1; end < columns_ && at(row, end) == category;)
          ++end;
        if (category == Buffer::CATEGORY_UNSPECIFIED)
          continue;
        const auto key = std::tuple(begin, end - begin, int(category));
        const auto grown = above.find(key);
        if (grown == above.end())
          result.push_back({category, begin * cell_, row * cell_, (end - begin) * cell_, 0});
        here[key] = grown == above.end() ? result.size() - 1 : grown->second;
        result[here[key]].height += cell_;
      }
    }
    return result;
  }

private:
  Buffer::Category at(int64_t row, int64_t column) const { return cells_[size_t(row * columns_ + column)].second; }

  Tenths cell_;
  int64_t columns_, rows_;
  std::vector<std::pair<Tenths, Buffer::Category>> cells_; // area of the owner
};

std::vector<Smudge> smudgesOf(const Role &role, const std::vector<Tile> &thin, Tenths width, Tenths height,
                              size_t most) {
  for (Tenths cell = onePixel;; cell *= 2) {
    Grid grid(cell, width, height);
    for (const Tile &tile : thin)
      grid.add(tile, role.buffers(tile.buffer).category());
    std::vector<Smudge> smudges = grid.smudges();
    if (smudges.size() <= most || cell >= std::max(width, height))
      return smudges;
  }
}

} // namespace

int64_t columnBegin(int64_t i, int64_t columns, int64_t length) { return columns == 0 ? 0 : i * length / columns; }

std::vector<Column> columnsOf(const plan::ProgramLives &lives, size_t most) {
  const int64_t count = std::min(int64_t(most), lives.instants());
  std::vector<Column> columns(static_cast<size_t>(count));
  int64_t instant = 0, column = -1;
  lives.walk([&](int call, int command, const plan::CategoryBytes &alive) {
    const bool fresh = column + 1 < count && instant == columnBegin(column + 1, count, lives.instants());
    column += fresh;
    ++instant;
    const uint64_t total = std::accumulate(alive.begin(), alive.end(), uint64_t(0));
    if (fresh || total > columns[size_t(column)].total)
      columns[size_t(column)] = {call, command, alive, total};
  });
  return columns;
}

ArenaPicture arenaPicture(const Role &role, std::string_view space, const plan::ProgramLives &lives, Tenths width,
                          Tenths height, size_t most) {
  const std::vector<Tile> tiles = tilesOf(role, space, lives, Canvas(role, space, lives.instants(), width, height));
  ArenaPicture picture;
  const auto visible = [&](const Tile &tile) { return tile.width >= picture.least && tile.height >= picture.least; };
  while (size_t(std::count_if(tiles.begin(), tiles.end(), visible)) > most)
    picture.least *= 2;
  std::vector<Tile> thin;
  for (const Tile &tile : tiles) {
    (visible(tile) ? picture.tiles : thin).push_back(tile);
    picture.thin += visible(tile) ? 0 : tile.times;
  }
  std::sort(picture.tiles.begin(), picture.tiles.end(), [](const Tile &a, const Tile &b) {
    return std::tie(b.y, a.x, a.buffer, a.slot) < std::tie(a.y, b.x, b.buffer, b.slot);
  });
  picture.smudges = smudgesOf(role, thin, width, height, most);
  return picture;
}

} // namespace ds::report
