//===- MovementProblemTest.cpp - against all schedules of small instances ----===//
#include "compiler/scheduling/MovementProblem.h"
#include "compiler/scheduling/TensorUses.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

constexpr int64_t never = std::numeric_limits<int64_t>::max() / 4;

int64_t below(std::mt19937 &random, int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); }

/// Three tensors of 4 bytes live over three moments; 8 bytes of room in the middle.
MovementProblem nested() {
  return {.live = {8, 12, 8}, .capacity = 8, .absences = {{0, 3, 4, 2}, {1, 2, 4, 1}, {0, 2, 4, 2}}};
}

TEST(MovementProblem, TakesWhatCostsLeast) {
  const std::optional<LeastMovement> least = leastMovement(nested());
  EXPECT_EQ(least, (LeastMovement{.bytes = 4, .away = {0, 4, 0}, .prices = {0, 1, 0}}));
  EXPECT_EQ(verify(nested(), *least), std::nullopt);
}

TEST(MovementProblem, TakesAPartOfATensor) {
  MovementProblem problem = nested();
  problem.capacity = 9;
  EXPECT_EQ(leastMovement(problem)->bytes, 3);
  problem.capacity = 12;
  EXPECT_EQ(leastMovement(problem)->bytes, 0);
}

TEST(MovementProblem, AbsencesMayCoverMoreThanIsMissing) {
  const MovementProblem problem{.live = {2, 3, 2}, .capacity = 1, .absences = {{0, 2, 1, 1}, {1, 3, 1, 1}}};
  EXPECT_EQ(leastMovement(problem)->away, (std::vector<int64_t>{1, 1}));
}

TEST(MovementProblem, SaysWhenNothingHelps) {
  MovementProblem problem = nested();
  problem.absences = {{1, 2, 3, 1}};
  EXPECT_EQ(leastMovement(problem), std::nullopt);
}

TEST(MovementProblem, VerifyRefuses) {
  const MovementProblem problem = nested();
  const LeastMovement least = *leastMovement(problem);
  const auto changed = [&](auto &&change) {
    LeastMovement other = least;
    change(other);
    return verify(problem, other);
  };
  EXPECT_NE(changed([](LeastMovement &one) { one.bytes = 3; }), std::nullopt);
  EXPECT_NE(changed([](LeastMovement &one) {
              one.away = {4, 0, 0};
              one.bytes = 8;
            }),
            std::nullopt)
      << "dearer";
  EXPECT_NE(changed([](LeastMovement &one) {
              one.away = {0, 3, 0};
              one.bytes = 3;
            }),
            std::nullopt)
      << "no room";
  EXPECT_NE(changed([](LeastMovement &one) {
              one.away = {0, 5, 0};
              one.bytes = 5;
            }),
            std::nullopt)
      << "more than lives";
  EXPECT_NE(changed([](LeastMovement &one) { one.prices = {0, 0, 0}; }), std::nullopt) << "no proof";
  EXPECT_NE(changed([](LeastMovement &one) { one.prices = {-1, 1, 0}; }), std::nullopt);
  EXPECT_NE(changed([](LeastMovement &one) { one.away.pop_back(); }), std::nullopt);
}

TEST(MovementProblem, CheckRefuses) {
  const auto refuses = [](auto &&change) {
    MovementProblem problem = nested();
    change(problem);
    return problem.check().has_value();
  };
  EXPECT_FALSE(refuses([](MovementProblem &) {}));
  EXPECT_TRUE(refuses([](MovementProblem &problem) { problem.capacity = -1; }));
  EXPECT_TRUE(refuses([](MovementProblem &problem) { problem.live[0] = -1; }));
  EXPECT_TRUE(refuses([](MovementProblem &problem) { problem.absences[0].begin = 3; }));
  EXPECT_TRUE(refuses([](MovementProblem &problem) { problem.absences[0].end = 4; }));
  EXPECT_TRUE(refuses([](MovementProblem &problem) { problem.absences[0].bytes = -1; }));
  EXPECT_TRUE(refuses([](MovementProblem &problem) { problem.absences[0].cost = -1; }));
  EXPECT_TRUE(refuses([](MovementProblem &problem) { problem.absences[0].bytes = 9; })) << "more than lives";
}

MovementProblem randomProblem(std::mt19937 &random, int64_t moments, int64_t absences, int64_t mostBytes) {
  MovementProblem problem{.live = std::vector<int64_t>(size_t(moments)), .capacity = 0, .absences = {}};
  for (int64_t &bytes : problem.live)
    bytes = below(random, 3);
  for (int64_t i = 0; i < absences; ++i) {
    const int64_t begin = below(random, moments);
    problem.absences.push_back(
        {begin, begin + 1 + below(random, moments - begin), 1 + below(random, mostBytes), below(random, 4)});
    for (int64_t moment = begin; moment < problem.absences.back().end; ++moment)
      problem.live[size_t(moment)] += problem.absences.back().bytes;
  }
  problem.capacity = 1 + below(random, 1 + *std::ranges::max_element(problem.live));
  return problem;
}

/// The least that whole absences cost, of all sets of them; `never` where none leaves room.
int64_t leastOfWhole(const MovementProblem &problem) {
  int64_t least = never;
  for (uint32_t set = 0; set < 1U << problem.absences.size(); ++set) {
    std::vector<int64_t> live = problem.live;
    int64_t cost = 0;
    for (size_t i = 0; i < problem.absences.size(); ++i) {
      const MovementProblem::Absence &one = problem.absences[i];
      for (int64_t moment = one.begin; (set >> i & 1) && moment < one.end; ++moment)
        live[size_t(moment)] -= one.bytes;
      cost += set >> i & 1 ? one.bytes * one.cost : 0;
    }
    if (*std::ranges::max_element(live) <= problem.capacity)
      least = std::min(least, cost);
  }
  return least;
}

TEST(MovementProblem, IsNoMoreThanTheBestOfAllSets) {
  std::mt19937 random(1);
  int64_t less = 0;
  for (int64_t run = 0; run < 3000; ++run) {
    const int64_t mostBytes = run % 2 == 0 ? 1 : 5;
    const MovementProblem problem = randomProblem(random, 1 + below(random, 6), below(random, 9), mostBytes);
    ASSERT_EQ(problem.check(), std::nullopt) << run;
    const std::optional<LeastMovement> least = leastMovement(problem);
    const int64_t whole = leastOfWhole(problem);
    ASSERT_EQ(least.has_value(), whole != never) << run;
    if (!least)
      continue;
    ASSERT_EQ(verify(problem, *least), std::nullopt) << run;
    if (mostBytes == 1) { // with one size the relaxation loses nothing
      ASSERT_EQ(least->bytes, whole) << run;
    }
    ASSERT_LE(least->bytes, whole) << run;
    less += least->bytes < whole ? 1 : 0;
  }
  EXPECT_GT(less, 0);
}

TEST(MovementProblem, LargeInstancesAreProven) {
  std::mt19937 random(2);
  for (int64_t run = 0; run < 5; ++run) {
    MovementProblem problem = randomProblem(random, 2000, 3000, int64_t(1) << 28);
    problem.capacity = *std::ranges::max_element(problem.live) / (2 + run) * 2;
    const std::optional<LeastMovement> least = leastMovement(problem);
    if (least) {
      EXPECT_EQ(verify(problem, *least), std::nullopt) << run;
    }
    EXPECT_TRUE(least || run > 1) << run;
  }
}

//===-- from uses of tensors ----------------------------------------------------===//

constexpr TensorUse::By compute = TensorUse::Compute, host = TensorUse::Host, device = TensorUse::Device;

TEST(TensorUses, AnActivationLeavesAndComesBack) {
  const UsedTensor tensor{.bytes = 4, .uses = {{compute, 0}, {compute, 1}, {compute, 4}}};
  const Movement movement = movementOf(std::vector{tensor}, std::vector<int64_t>{4, 4, 6, 6, 4}, 7);
  EXPECT_EQ(movement.forced, 0);
  EXPECT_EQ(movement.problem.live, (std::vector<int64_t>{4, 4, 10, 10, 4}));
  ASSERT_EQ(movement.problem.absences.size(), 1U);
  EXPECT_EQ(movement.problem.absences[0].cost, 2);
  EXPECT_EQ(leastMovement(movement.problem)->bytes, 6);
}

TEST(TensorUses, ASecondAbsenceComesInOnly) {
  const UsedTensor tensor{.bytes = 4, .uses = {{compute, 0}, {compute, 2}, {compute, 5}}};
  const MovementProblem problem = movementOf(std::vector{tensor}, std::vector<int64_t>{4, 6, 4, 6, 6, 4}, 6).problem;
  ASSERT_EQ(problem.absences.size(), 2U);
  EXPECT_EQ(std::pair(problem.absences[0].cost, problem.absences[1].cost), std::pair(int64_t(1), int64_t(2)));
}

TEST(TensorUses, StateIsAwayFromStepToStep) {
  const UsedTensor moment{.bytes = 4, .uses = {{compute, 2}, {compute, 2}}}; // made by an update, read by the next one
  const Movement movement = movementOf(std::vector{moment}, std::vector<int64_t>{6, 6, 4, 6}, 8);
  EXPECT_EQ(movement.problem.live, (std::vector<int64_t>{10, 10, 4, 10}));
  EXPECT_EQ(leastMovement(movement.problem)->bytes, 4) << "two of four bytes, out and in";
}

TEST(TensorUses, WhatIsNeverWrittenComesInOnly) {
  const UsedTensor constant{.bytes = 4, .origin = UsedTensor::Kept, .uses = {{compute, 1}}};
  const Movement movement = movementOf(std::vector{constant}, std::vector<int64_t>{0, 4, 6, 6}, 8);
  EXPECT_EQ(movement.problem.live, (std::vector<int64_t>{4, 4, 10, 10}));
  EXPECT_EQ(leastMovement(movement.problem)->bytes, 2);
}

TEST(TensorUses, WhatBothMemoriesUseMovesWhateverTheRoom) {
  const UsedTensor weight{.bytes = 4, .uses = {{host}, {compute, 0}, {compute, 2}, {host}}};
  const UsedTensor gradient{.bytes = 3, .uses = {{compute, 2}, {host}}};
  const UsedTensor reduced{.bytes = 2, .uses = {{compute, 1}, {device}, {compute, 2}}};
  EXPECT_EQ(movementOf(std::vector{weight}, std::vector<int64_t>{4, 0, 4}, 100).forced, 4);
  EXPECT_EQ(movementOf(std::vector{gradient}, std::vector<int64_t>{0, 0, 3}, 100).forced, 3);
  EXPECT_EQ(movementOf(std::vector{reduced}, std::vector<int64_t>{0, 2, 2}, 100).forced, 0);
}

/// Some tensors are used at once. By compute: all of them are in device memory meanwhile, beside `scratch`.
struct Instant {
  TensorUse::By by = compute;
  int64_t scratch = 0;
  std::vector<size_t> tensors;
  std::vector<char> writes; // by place in `tensors`
};

/// Whole tensors and a step that repeats.
struct Instance {
  std::vector<int64_t> bytes;
  std::vector<char> survives;
  std::vector<Instant> instants;
  int64_t capacity = 0;

  Movement movement() const {
    std::vector<std::vector<UsedTensor>> tensors; // each as its writes make it
    for (size_t i = 0; i < bytes.size(); ++i)
      tensors.push_back({{.bytes = bytes[i], .origin = survives[i] ? UsedTensor::Kept : UsedTensor::Made, .uses = {}}});
    std::vector<int64_t> used;
    for (const Instant &instant : instants) {
      for (size_t i = 0; i < instant.tensors.size(); ++i) {
        std::vector<UsedTensor> &own = tensors[instant.tensors[i]];
        const TensorUse use{instant.by, int64_t(used.size())};
        own.back().uses.push_back(use);
        if (instant.writes[i] && (own.size() > 1 || own[0].uses.size() > 1 || survives[instant.tensors[i]]))
          own.push_back({.bytes = own[0].bytes, .origin = UsedTensor::Made, .uses = {use}});
      }
      if (instant.by != compute)
        continue;
      used.push_back(instant.scratch);
      for (size_t tensor : instant.tensors)
        used.back() += bytes[tensor];
    }
    std::vector<UsedTensor> all;
    for (std::vector<UsedTensor> &own : tensors) {
      if (own.size() > 1 && own[0].origin == UsedTensor::Kept) { // the next step begins with the last of them
        own.back().uses.insert(own.back().uses.end(), own[0].uses.begin(), own[0].uses.end());
        own.erase(own.begin());
      }
      all.insert(all.end(), own.begin(), own.end());
    }
    return movementOf(all, used, capacity);
  }
};

Instance randomInstance(std::mt19937 &random) {
  Instance instance;
  std::vector<char> made;
  for (int64_t i = 1 + below(random, 3); i > 0; --i) {
    instance.bytes.push_back(1 + below(random, 4));
    instance.survives.push_back(char(below(random, 2)));
    made.push_back(instance.survives.back());
  }
  for (int64_t i = 3 + below(random, 5); i > 0; --i) {
    const int64_t by = below(random, 6);
    Instant instant{.by = by == 0   ? host
                          : by == 1 ? device
                                    : compute,
                    .scratch = below(random, 4),
                    .tensors = {},
                    .writes = {}};
    for (size_t tensor = 0; tensor < made.size(); ++tensor)
      if (below(random, 2) == 0 && (instant.by == compute || instant.tensors.empty())) {
        instant.tensors.push_back(tensor);
        instant.writes.push_back(char(made[tensor] == 0 || below(random, 3) == 0));
        made[tensor] = 1;
      }
    instance.instants.push_back(instant);
  }
  instance.capacity = 2 + below(random, 12);
  return instance;
}

/// The least that schedules of whole tensors move, by dynamic programming. A state has two bits a tensor: it is in
/// device memory, in host memory; neither: it does not exist.
class AllSchedules {
public:
  explicit AllSchedules(const Instance &instance) : instance_(instance) {
    first_.assign(instance.bytes.size(), never);
    last_.assign(instance.bytes.size(), 0);
    for (size_t i = instance.instants.size(); i-- > 0;)
      for (size_t tensor : instance.instants[i].tensors)
        first_[tensor] = int64_t(i), last_[tensor] = std::max(last_[tensor], int64_t(i));
  }

  int64_t least() const {
    int64_t best = never;
    for (size_t start = 0; start < size_t(1) << (2 * instance_.bytes.size()); ++start) {
      bool begins = true; // with just what survives
      for (size_t tensor = 0; tensor < instance_.bytes.size(); ++tensor)
        begins &= (placeOf(start, tensor) != 0) == (instance_.survives[tensor] != 0);
      if (!begins)
        continue;
      std::vector<int64_t> cost(size_t(1) << (2 * instance_.bytes.size()), never);
      cost[start] = 0;
      for (size_t i = 0; i < instance_.instants.size(); ++i)
        cost = run(moved(cost), i);
      best = std::min(best, moved(cost)[start]);
    }
    return best;
  }

private:
  static size_t placeOf(size_t state, size_t tensor) { return state >> (2 * tensor) & 3; }
  static size_t put(size_t state, size_t tensor, size_t place) {
    return (state & ~(size_t(3) << (2 * tensor))) | place << (2 * tensor);
  }

  /// Copies either way, and drops.
  std::vector<int64_t> moved(std::vector<int64_t> cost) const {
    for (size_t tensor = 0; tensor < instance_.bytes.size(); ++tensor) {
      const std::vector<int64_t> before = cost;
      for (size_t state = 0; state < cost.size(); ++state)
        for (size_t place = 1, from = placeOf(state, tensor); place <= 3 && from != 0; ++place) {
          int64_t &to = cost[put(state, tensor, place)];
          to = std::min(to, before[state] + ((place & ~from) != 0 ? instance_.bytes[tensor] : 0));
        }
    }
    return cost;
  }

  /// Of the states in which an instant can run, those after it.
  std::vector<int64_t> run(const std::vector<int64_t> &cost, size_t number) const {
    const Instant &instant = instance_.instants[number];
    const size_t here = instant.by == host ? 2 : 1;
    std::vector<int64_t> after(cost.size(), never);
    for (size_t state = 0; state < cost.size(); ++state) {
      size_t during = state;
      bool runs = true;
      for (size_t i = 0; i < instant.tensors.size(); ++i) {
        const size_t tensor = instant.tensors[i];
        const bool begins = instance_.survives[tensor] == 0 && first_[tensor] == int64_t(number);
        runs &= begins || (placeOf(state, tensor) & here) != 0;
        if (instant.writes[i] != 0)
          during = put(during, tensor, here);
      }
      int64_t held = instant.scratch;
      for (size_t tensor = 0; tensor < instance_.bytes.size(); ++tensor)
        held += ((placeOf(state, tensor) | placeOf(during, tensor)) & 1) != 0 ? instance_.bytes[tensor] : 0;
      if (!runs || (instant.by == compute && held > instance_.capacity))
        continue;
      for (size_t tensor : instant.tensors)
        if (instance_.survives[tensor] == 0 && last_[tensor] == int64_t(number))
          during = put(during, tensor, 0);
      after[during] = std::min(after[during], cost[state]);
    }
    return after;
  }

  const Instance &instance_;
  std::vector<int64_t> first_, last_; // instants, by tensor
};

TEST(TensorUses, NoScheduleMovesLess) {
  std::mt19937 random(3);
  int64_t equal = 0, moves = 0;
  for (int64_t run = 0; run < 4000; ++run) {
    const Instance instance = randomInstance(random);
    const Movement movement = instance.movement();
    ASSERT_EQ(movement.problem.check(), std::nullopt) << run;
    const std::optional<LeastMovement> least = leastMovement(movement.problem);
    const int64_t best = AllSchedules(instance).least();
    ASSERT_TRUE(least || best == never) << run;
    if (!least || best == never)
      continue;
    ASSERT_EQ(verify(movement.problem, *least), std::nullopt) << run;
    ASSERT_LE(movement.forced + least->bytes, best) << run;
    moves += best > 0 ? 1 : 0;
    equal += best > 0 && movement.forced + least->bytes == best ? 1 : 0;
  }
  EXPECT_GT(moves, 1000);
  EXPECT_GT(equal, moves / 2) << "of " << moves; // whole tensors move more than parts
}

} // namespace
} // namespace ds::scheduling
