//===- TensorUses.cpp - what absences there are, and which of them pay ---------===//
#include "compiler/scheduling/TensorUses.h"

#include "compiler/scheduling/MovementProblem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ds::scheduling {
namespace {

using Absence = MovementProblem::Absence;

/// A tensor between two uses by compute: two absences where it lasts into the next step.
using Stay = std::vector<Absence>;

bool isUsedByHost(const UsedTensor &tensor) {
  return std::ranges::count(tensor.uses, TensorUse::Host, &TensorUse::by) > 0;
}

/// What host and device both use crosses once, if one of them makes it.
int64_t forcedBytes(const UsedTensor &tensor) {
  const auto byHost = size_t(std::ranges::count(tensor.uses, TensorUse::Host, &TensorUse::by));
  return tensor.origin == UsedTensor::Made && byHost > 0 && byHost < tensor.uses.size() ? tensor.bytes : 0;
}

std::vector<Stay> staysOf(const UsedTensor &tensor, int64_t moments) {
  std::vector<int64_t> uses; // by compute
  for (const TensorUse &use : tensor.uses)
    if (use.by == TensorUse::Compute)
      uses.push_back(use.moment);
  if (tensor.origin == UsedTensor::Kept && !uses.empty())
    uses.push_back(uses.front());
  std::vector<Stay> stays;
  for (size_t i = 0; i + 1 < uses.size(); ++i) {
    Stay stay;
    const auto part = [&](int64_t begin, int64_t end) {
      if (begin < end)
        stay.push_back({.begin = begin, .end = end, .bytes = tensor.bytes, .cost = 0});
    };
    if (uses[i] < uses[i + 1])
      part(uses[i] + 1, uses[i + 1]);
    else {
      part(uses[i] + 1, moments);
      part(0, uses[i + 1]);
    }
    if (!stay.empty())
      stays.push_back(stay);
  }
  return stays;
}

/// By moment and the end, how many moments before it lack room, if nothing is away.
std::vector<int64_t> lackingBefore(const MovementProblem &problem) {
  std::vector<int64_t> before{0};
  for (int64_t live : problem.live)
    before.push_back(before.back() + (live > problem.capacity ? 1 : 0));
  return before;
}

void addLives(const std::vector<std::vector<Stay>> &stays, std::vector<int64_t> &live) {
  std::vector<int64_t> change(live.size() + 1);
  for (const std::vector<Stay> &own : stays)
    for (const Stay &stay : own)
      for (const Absence &part : stay) {
        change[size_t(part.begin)] += part.bytes;
        change[size_t(part.end)] -= part.bytes;
      }
  int64_t sum = 0;
  for (size_t moment = 0; moment < live.size(); ++moment) {
    sum += change[moment];
    live[moment] += sum;
  }
}

} // namespace

Movement movementOf(std::span<const UsedTensor> tensors, std::span<const int64_t> used, int64_t capacity) {
  Movement movement{.forced = 0, .problem = {.live = {used.begin(), used.end()}, .capacity = capacity, .absences = {}}};
  std::vector<std::vector<Stay>> stays; // by tensor
  for (const UsedTensor &tensor : tensors) {
    movement.forced += forcedBytes(tensor);
    stays.push_back(staysOf(tensor, int64_t(used.size())));
  }
  addLives(stays, movement.problem.live);
  const std::vector<int64_t> before = lackingBefore(movement.problem);
  const auto covers = [&](const Absence &part) { return before[size_t(part.end)] - before[size_t(part.begin)]; };
  for (size_t i = 0; i < tensors.size(); ++i) {
    Absence *longest = nullptr; // which pays for the way out
    for (Stay &stay : stays[i]) {
      Absence &longer = *std::ranges::max_element(stay, {}, covers);
      longer.cost = 1;
      if (!longest || covers(longer) > covers(*longest))
        longest = &longer;
    }
    if (longest && tensors[i].origin == UsedTensor::Made && !isUsedByHost(tensors[i]))
      ++longest->cost;
    for (const Stay &stay : stays[i])
      movement.problem.absences.insert(movement.problem.absences.end(), stay.begin(), stay.end());
  }
  return movement;
}

} // namespace ds::scheduling
