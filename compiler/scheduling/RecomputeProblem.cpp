//===- RecomputeProblem.cpp - what may be asked, and whether an answer is one ===//
#include "compiler/scheduling/Recompute.h"

#include <cstddef>

namespace ds::scheduling {
namespace {

/// By value, whether the backward reads it or a repeated op that is of use does; and by op, whether it is of use.
struct Needs {
  Needs(const RecomputeProblem &problem, const std::vector<char> &again)
      : value(problem.values.size()), op(problem.ops.size()) {
    std::vector<std::vector<size_t>> results(problem.ops.size());
    for (size_t v = 0; v < problem.values.size(); ++v) {
      value[v] = problem.values[v].needed;
      if (problem.values[v].producer >= 0)
        results[size_t(problem.values[v].producer)].push_back(v);
    }
    for (size_t i = problem.ops.size(); i-- > 0;) {
      for (const size_t result : results[i])
        op[i] |= again[i] && value[result];
      if (op[i])
        for (const int32_t operand : problem.ops[i].operands)
          value[size_t(operand)] = 1;
    }
  }
  std::vector<char> value, op;
};

} // namespace

std::optional<std::string> RecomputeProblem::check() const {
  const auto count = int32_t(values.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].time < 0)
      return "op " + std::to_string(i) + " takes less than no time";
    for (const int32_t operand : ops[i].operands)
      if (operand < 0 || operand >= count || values[size_t(operand)].producer >= int32_t(i))
        return "op " + std::to_string(i) + " reads a value that is not made before it";
  }
  for (size_t v = 0; v < values.size(); ++v)
    if (values[v].bytes < 0 || values[v].producer < -1 || values[v].producer >= int32_t(ops.size()))
      return "value " + std::to_string(v) + " has less than no bytes or is made by no op";
  return std::nullopt;
}

RecomputeChoice choiceOf(const RecomputeProblem &problem, std::vector<char> again) {
  const Needs needs(problem, again);
  RecomputeChoice choice{std::move(again), 0, 0};
  for (size_t i = 0; i < problem.ops.size(); ++i)
    choice.time += choice.again[i] ? problem.ops[i].time : 0;
  for (size_t v = 0; v < problem.values.size(); ++v)
    if (const int32_t producer = problem.values[v].producer;
        needs.value[v] && (producer < 0 || !choice.again[size_t(producer)]))
      choice.bytes += problem.values[v].bytes;
  return choice;
}

std::optional<std::string> verify(const RecomputeProblem &problem, const RecomputeChoice &choice) {
  if (choice.again.size() != problem.ops.size())
    return "it decides about " + std::to_string(choice.again.size()) + " ops, but there are " +
           std::to_string(problem.ops.size());
  const Needs needs(problem, choice.again);
  for (size_t i = 0; i < problem.ops.size(); ++i) {
    if (choice.again[i] && !problem.ops[i].mayRepeat)
      return "op " + std::to_string(i) + " may not be repeated";
    if (choice.again[i] && !needs.op[i])
      return "op " + std::to_string(i) + " is repeated for nothing";
  }
  const RecomputeChoice sums = choiceOf(problem, choice.again);
  if (sums.bytes != choice.bytes || sums.time != choice.time)
    return "it says " + std::to_string(choice.bytes) + " bytes and a time of " + std::to_string(choice.time) +
           ", but these are " + std::to_string(sums.bytes) + " and " + std::to_string(sums.time);
  return std::nullopt;
}

} // namespace ds::scheduling
