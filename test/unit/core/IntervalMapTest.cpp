//===- IntervalMapTest.cpp - beside an array with a cell for each number ------===//
#include "core/IntervalMap.h"

#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <vector>

namespace ds {
namespace {

/// What was assigned, and how far behind its first number this is.
struct Mark {
  int name = 0;
  uint64_t behind = 0;
  void skip(uint64_t count) { behind += count; }
  bool operator==(const Mark &) const = default;
};

constexpr uint64_t cells = 24;
using Cells = std::array<std::optional<Mark>, cells>;

struct Interval {
  uint64_t begin, end;
  Mark mark;
};

std::vector<Interval> touching(const IntervalMap<Mark> &map, uint64_t begin, uint64_t end) {
  std::vector<Interval> found;
  map.touching(begin, end, [&](uint64_t from, uint64_t to, const Mark &mark) { found.push_back({from, to, mark}); });
  return found;
}

/// The whole map says cell by cell what `expected` says, in intervals that follow each other.
void expectSame(const IntervalMap<Mark> &map, const Cells &expected) {
  Cells found;
  uint64_t last = 0;
  for (const Interval &one : touching(map, 0, cells)) {
    EXPECT_LE(last, one.begin);
    EXPECT_LT(one.begin, one.end);
    last = one.end;
    for (uint64_t at = one.begin; at < one.end; ++at)
      found[at] = Mark{one.mark.name, one.mark.behind + at - one.begin};
  }
  EXPECT_EQ(found, expected);
}

TEST(IntervalMap, IsAnArrayOfCells) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    IntervalMap<Mark> map;
    Cells model;
    for (int step = 0; step < 12; ++step) {
      uint64_t begin = random() % (cells + 1), end = random() % (cells + 1);
      if (begin > end)
        std::swap(begin, end);
      const auto what = random() % 4;
      if (what == 0)
        map.erase(begin, end);
      else if (what < 3)
        map.assign(begin, end, {step + 1});
      else
        map.over(begin, end, [&](uint64_t from, uint64_t to, Mark &mark) {
          EXPECT_TRUE(begin <= from && from < to && to <= end);
          mark.name += 100;
        });
      for (uint64_t at = begin; at < end; ++at)
        if (what == 0)
          model[at].reset();
        else if (what < 3)
          model[at] = Mark{step + 1, at - begin};
        else if (model[at])
          model[at]->name += 100;
      expectSame(map, model);
    }
  }
}

TEST(IntervalMap, VisitsWhatTouches) {
  IntervalMap<Mark> map;
  map.assign(2, 5, {1});
  map.assign(5, 7, {2});
  map.assign(9, 12, {3});
  const auto names = [&](uint64_t begin, uint64_t end) {
    std::vector<int> found;
    for (const Interval &one : touching(map, begin, end))
      found.push_back(one.mark.name);
    return found;
  };
  EXPECT_EQ(names(0, 2), std::vector<int>{});
  EXPECT_EQ(names(4, 6), (std::vector{1, 2}));
  EXPECT_EQ(names(7, 9), std::vector<int>{});
  EXPECT_EQ(names(6, 10), (std::vector{2, 3}));
  EXPECT_EQ(names(3, 3), std::vector<int>{});
  EXPECT_EQ(touching(map, 4, 5).front().begin, 2u); // whole
}

TEST(IntervalMap, LeavesNumbersThatAreNotToldOfACut) {
  IntervalMap<int> map;
  map.assign(0, 8, 5);
  map.erase(3, 4);
  std::vector<int> found;
  map.over(0, 8, [&](uint64_t, uint64_t, int &value) { found.push_back(value); });
  EXPECT_EQ(found, (std::vector{5, 5}));
}

} // namespace
} // namespace ds
