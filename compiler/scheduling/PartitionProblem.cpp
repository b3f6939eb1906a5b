//===- PartitionProblem.cpp - what makes a partition right ----------------===//
#include "compiler/scheduling/PipelinePartition.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace ds::scheduling {
namespace {

using Fault = std::optional<std::string>;

constexpr int64_t maxBytes = std::numeric_limits<int64_t>::max() / 4; // sums of two such are representable

std::string text(int64_t number) { return std::to_string(number); }
std::string text(size_t number) { return std::to_string(number); }

bool isTime(double seconds) { return seconds >= 0 && std::isfinite(seconds); }

/// Adds `bytes` to `sum`; false where it is negative or more than any address space.
bool add(int64_t bytes, int64_t &sum) {
  if (bytes < 0 || bytes > maxBytes - sum)
    return false;
  sum += bytes;
  return true;
}

Fault checkUnits(const PartitionProblem &problem, int64_t maxInFlight) {
  double seconds = 0;
  int64_t states = 0, activations = 0;
  for (size_t i = 0; i < problem.units.size(); ++i) {
    const PartitionProblem::Unit &unit = problem.units[i];
    seconds += unit.seconds;
    if (!isTime(unit.seconds) || !isTime(seconds))
      return "unit " + text(i) + " takes " + std::to_string(unit.seconds) + " seconds";
    if (!add(unit.stateBytes, states) || !add(unit.activationBytes, activations))
      return "unit " + text(i) + " holds " + text(unit.stateBytes) + " and " + text(unit.activationBytes) +
             " bytes, negative or more with the others than any address space";
  }
  if (activations > 0 && maxInFlight > maxBytes / activations)
    return text(maxInFlight) + " micro-batches in flight are larger than any address space";
  return std::nullopt;
}

Fault checkPositions(const PartitionProblem &problem) {
  const size_t positions = problem.units.size() + 1;
  if (problem.crossing.size() != positions || (!problem.mayCut.empty() && problem.mayCut.size() != positions))
    return text(problem.units.size()) + " units have " + text(positions) + " positions, not " +
           text(problem.crossing.size()) + (problem.mayCut.empty() ? "" : " and " + text(problem.mayCut.size()));
  int64_t sum = 0;
  for (size_t i = 0; i < positions; ++i)
    if (!add(problem.crossing[i], sum))
      return "position " + text(i) + " sends " + text(problem.crossing[i]) +
             " bytes, negative or more with the others than any address space";
  if (!isTime(double(sum) * problem.secondsPerByte) || problem.secondsPerByte < 0)
    return "a byte takes " + std::to_string(problem.secondsPerByte) + " seconds";
  return std::nullopt;
}

} // namespace

std::optional<std::string> PartitionProblem::check() const {
  if (units.empty() || stages < 1)
    return text(units.size()) + " units cannot make " + text(stages) + " stages; both must be at least 1";
  if (memoryBytes < 0)
    return "a memory of " + text(memoryBytes) + " bytes is negative";
  if (!inFlight.empty() && inFlight.size() != size_t(stages))
    return text(inFlight.size()) + " numbers of micro-batches in flight for " + text(stages) + " stages";
  int64_t maxInFlight = 1;
  for (int64_t flying : inFlight) {
    if (flying < 0)
      return text(flying) + " micro-batches in flight are fewer than none";
    maxInFlight = std::max(maxInFlight, flying);
  }
  if (Fault fault = checkUnits(*this, maxInFlight))
    return fault;
  return checkPositions(*this);
}

double stageSeconds(const PartitionProblem &problem, int64_t begin, int64_t end) {
  double seconds = 0;
  for (int64_t i = begin; i < end; ++i)
    seconds += problem.units[size_t(i)].seconds;
  const int64_t received = begin == 0 ? 0 : problem.crossing[size_t(begin)];
  const int64_t sent = end == int64_t(problem.units.size()) ? 0 : problem.crossing[size_t(end)];
  return seconds + double(received + sent) * problem.secondsPerByte;
}

int64_t stageBytes(const PartitionProblem &problem, int64_t stage, int64_t begin, int64_t end) {
  int64_t state = 0, activation = 0;
  for (int64_t i = begin; i < end; ++i) {
    state += problem.units[size_t(i)].stateBytes;
    activation += problem.units[size_t(i)].activationBytes;
  }
  return state + (problem.inFlight.empty() ? 1 : problem.inFlight[size_t(stage)]) * activation;
}

std::optional<std::string> verify(const PartitionProblem &problem, const Partition &partition) {
  if (int64_t(partition.cuts.size()) != problem.stages - 1)
    return text(partition.cuts.size()) + " cuts do not make " + text(problem.stages) + " stages";
  double slowest = 0, all = 0;
  int64_t begin = 0;
  for (int64_t stage = 0; stage < problem.stages; ++stage) {
    const bool last = stage + 1 == problem.stages;
    const int64_t end = last ? int64_t(problem.units.size()) : partition.cuts[size_t(stage)];
    if (end <= begin || end > int64_t(problem.units.size()) || (!last && end == int64_t(problem.units.size())))
      return "stage " + text(stage) + " is [" + text(begin) + ", " + text(end) + ") of " + text(problem.units.size()) +
             " units";
    if (!last && !problem.mayCut.empty() && !problem.mayCut[size_t(end)])
      return "there must be no cut at position " + text(end);
    const int64_t bytes = stageBytes(problem, stage, begin, end);
    if (problem.memoryBytes > 0 && bytes > problem.memoryBytes)
      return "stage " + text(stage) + " needs " + text(bytes) + " bytes of " + text(problem.memoryBytes);
    slowest = std::max(slowest, stageSeconds(problem, begin, end));
    all += stageSeconds(problem, begin, end);
    begin = end;
  }
  if (std::abs(slowest - partition.bottleneck) > 1e-9 * all)
    return "the slowest stage takes " + std::to_string(slowest) + " seconds, not " +
           std::to_string(partition.bottleneck);
  return std::nullopt;
}

} // namespace ds::scheduling
