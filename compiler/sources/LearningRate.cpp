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

} // namespace

double learningRate(const Schedule &schedule, int64_t number) {
  if (schedule.type == "constant")
    return schedule.lr;
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
  for (const int64_t edge : {std::max<int64_t>(2, schedule.warmup), schedule.total})
    for (const int64_t near : {edge / 2, edge - 1, edge, edge + 1, edge + 2})
      updates.push_back(std::max<int64_t>(0, near));
  updates.push_back((schedule.warmup + schedule.total) / 2);
  std::ranges::sort(updates);
  updates.erase(std::ranges::unique(updates).begin(), updates.end());
  return updates;
}

} // namespace ds::sources
