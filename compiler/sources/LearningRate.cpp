//===- LearningRate.cpp - DeepSpeed's schedules, a second time ------------===//
#include "compiler/sources/LearningRate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace ds::sources {
namespace {

/// DeepSpeed's schedulers count from -1, and step once before the first update that they decide.
double cosine(const Schedule &schedule, double iteration, double warmup) {
  const double span = std::max(1.0, double(schedule.total) - warmup);
  const double done = std::min(1.0, (iteration - warmup + 1) / span);
  const double ratio = (1 + std::cos(std::numbers::pi * done)) / 2;
  return schedule.lr * (schedule.cosineRatio + (1 - schedule.cosineRatio) * ratio);
}

/// How far the cycle has risen, from 0 to 1, as DeepSpeed's _get_scale_factor rounds it.
double risen(const Cycle &cycle, int64_t number) {
  const double total = double(cycle.up + cycle.down), ratio = double(cycle.up) / total;
  const double turn = double(number) / total, phase = 1 + turn - std::floor(1 + turn);
  const int64_t stairs = phase <= ratio ? cycle.upStairs : cycle.downStairs;
  if (stairs > 0) {
    const int64_t within = number % (cycle.up + cycle.down);
    const double left = within <= cycle.up
                            ? double(within) * double(stairs) / double(cycle.up)
                            : double(cycle.up + cycle.down - within) * double(stairs) / double(cycle.down);
    return std::floor(left) / double(stairs);
  }
  return phase <= ratio ? phase / ratio : (phase - 1) / (ratio - 1);
}

/// After the cycle.
double decayed(const Cycle &cycle, int64_t number, double slope) {
  const int64_t over = number - cycle.up - cycle.down;
  return cycle.decay > 0 ? 1 + slope * (double(over) / double(cycle.decay)) : 1;
}

double rangeTest(const Schedule &schedule, int64_t number) {
  const double interval = schedule.stairs ? double(number / schedule.length) : double(number) / double(schedule.length);
  return schedule.least * (1 + schedule.slope * interval);
}

double oneCycle(const Schedule &schedule, int64_t number) {
  if (number > schedule.cycle.up + schedule.cycle.down)
    return schedule.least / decayed(schedule.cycle, number, schedule.slope);
  return schedule.least + (schedule.most - schedule.least) * risen(schedule.cycle, number);
}

} // namespace

double cycledMomentum(const CycledMomentum &momentum, int64_t number) {
  if (number == 0) // what the scheduler's constructor sets
    return momentum.least;
  if (number > momentum.cycle.up + momentum.cycle.down)
    return momentum.most * decayed(momentum.cycle, number, momentum.slope);
  return momentum.most - (momentum.most - momentum.least) * risen(momentum.cycle, number);
}

double learningRate(const Schedule &schedule, int64_t number) {
  if (schedule.type == "constant")
    return schedule.lr;
  if (schedule.type == "LRRangeTest")
    return rangeTest(schedule, number);
  if (schedule.type == "OneCycle")
    return oneCycle(schedule, number);
  const bool isCosine = schedule.type == "WarmupCosineLR";
  if (number == 0)
    return isCosine ? 0 : schedule.least;
  const double iteration = double(number - 1), warmup = double(std::max<int64_t>(2, schedule.warmup));
  if (iteration < warmup) {
    const double part = schedule.linear ? iteration / warmup : std::log(iteration + 1) / std::log(warmup);
    return isCosine ? schedule.lr * (schedule.leastRatio + (1 - schedule.leastRatio) * part)
                    : schedule.least + (schedule.most - schedule.least) * part;
  }
  if (isCosine)
    return cosine(schedule, iteration, warmup);
  if (schedule.type == "WarmupLR")
    return schedule.most;
  const double left = (double(schedule.total) - iteration) / std::max(1.0, double(schedule.total) - warmup);
  return schedule.least + (schedule.most - schedule.least) * std::max(0.0, left);
}

std::vector<int64_t> sampledUpdates(const Schedule &schedule) {
  std::vector<int64_t> updates = {0, 1, 2, 3, 10, 1000, 100000};
  for (const int64_t edge : {std::max<int64_t>(2, schedule.warmup), schedule.total, schedule.length, schedule.cycle.up,
                             schedule.cycle.up + schedule.cycle.down})
    for (const int64_t near : {edge / 2, edge - 1, edge, edge + 1, edge + 2})
      updates.push_back(std::max<int64_t>(0, near));
  updates.push_back((schedule.warmup + schedule.total) / 2);
  std::ranges::sort(updates);
  updates.erase(std::ranges::unique(updates).begin(), updates.end());
  return updates;
}

} // namespace ds::sources
