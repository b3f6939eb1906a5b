//===- VerifySchedule.cpp - what makes an order of tasks right ------------===//
#include "compiler/scheduling/PipelineSchedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::scheduling {
namespace {

std::string text(int64_t number) { return std::to_string(number); }

std::string describe(const PipelineTask &task) {
  static const std::array<const char *, 3> names{"the forward", "the backward", "the weight gradients"};
  return std::string(names[size_t(task.kind)]) + " of micro-batch " + text(task.microbatch) + " through stage " +
         text(task.stage);
}

using Fault = std::optional<std::string>;

class Verifier {
public:
  Verifier(const ScheduleProblem &problem, const TaskOrder &order) : problem_(problem), order_(order) {
    slack_ = 1e-9 * std::max(order.length, 1e-300);
  }

  Fault run() {
    const auto ranks = size_t(problem_.ranks);
    if (order_.byRank.size() != ranks || order_.begin.size() != ranks)
      return "the order is for " + text(int64_t(order_.byRank.size())) + " ranks, not " + text(problem_.ranks);
    for (std::vector<double> &begins : begin_)
      begins.assign(size_t(problem_.stages() * problem_.microbatches), absent);
    for (size_t rank = 0; rank < ranks; ++rank) {
      if (Fault fault = placeTasks(rank))
        return fault;
      if (Fault fault = oneAtATime(rank))
        return fault;
    }
    if (Fault fault = completeAndInOrder())
      return fault;
    if (Fault fault = inFlight())
      return fault;
    return figures();
  }

private:
  static constexpr double absent = -1;

  double duration(TaskKind kind) const {
    return kind == TaskKind::Forward    ? problem_.forward
           : kind == TaskKind::Backward ? problem_.backward
                                        : problem_.weight;
  }
  double &beginOf(TaskKind kind, int64_t stage, int64_t microbatch) {
    return begin_[size_t(kind)][size_t(stage * problem_.microbatches + microbatch)];
  }

  /// Notes when each task of a rank begins: it is one of the problem's, on its rank, and not there yet.
  Fault placeTasks(size_t rank) {
    const std::vector<PipelineTask> &tasks = order_.byRank[rank];
    if (order_.begin[rank].size() != tasks.size())
      return "rank " + text(int64_t(rank)) + " has " + text(int64_t(tasks.size())) + " tasks and " +
             text(int64_t(order_.begin[rank].size())) + " times at which they begin";
    for (size_t i = 0; i < tasks.size(); ++i) {
      const PipelineTask &task = tasks[i];
      if (size_t(task.kind) >= begin_.size() || (task.kind == TaskKind::Weight && !problem_.splitsWeights()) ||
          task.stage < 0 || task.stage >= problem_.stages() || task.microbatch < 0 ||
          task.microbatch >= problem_.microbatches)
        return "rank " + text(int64_t(rank)) + " has a task at place " + text(int64_t(i)) + " that the problem has not";
      if (problem_.rankOf(task.stage) != int64_t(rank))
        return describe(task) + " is on rank " + text(int64_t(rank)) + ", not " + text(problem_.rankOf(task.stage));
      double &begin = beginOf(task.kind, task.stage, task.microbatch);
      if (begin != absent)
        return describe(task) + " stands in the order twice";
      begin = order_.begin[rank][i];
      if (!(begin >= 0) || !std::isfinite(begin))
        return describe(task) + " begins at " + std::to_string(begin);
    }
    return std::nullopt;
  }

  Fault oneAtATime(size_t rank) const {
    const std::vector<PipelineTask> &tasks = order_.byRank[rank];
    const std::vector<double> &begin = order_.begin[rank];
    for (size_t i = 1; i < tasks.size(); ++i)
      if (begin[i] < begin[i - 1] + duration(tasks[i - 1].kind) - slack_)
        return describe(tasks[i]) + " begins before the end of " + describe(tasks[i - 1]) + " on rank " +
               text(int64_t(rank));
    return std::nullopt;
  }

  Fault before(const PipelineTask &first, const PipelineTask &second) {
    const double end = beginOf(first.kind, first.stage, first.microbatch) + duration(first.kind);
    if (beginOf(second.kind, second.stage, second.microbatch) < end - slack_)
      return describe(second) + " begins before the end of " + describe(first);
    return std::nullopt;
  }

  /// What has to come before a task: what it reads, and the same of the micro-batch before.
  std::vector<PipelineTask> needs(const PipelineTask &task) const {
    const auto &[kind, stage, microbatch] = task;
    std::vector<PipelineTask> all;
    if (microbatch > 0)
      all.push_back({kind, stage, microbatch - 1});
    if (kind == TaskKind::Forward && stage > 0)
      all.push_back({kind, stage - 1, microbatch});
    if (kind == TaskKind::Backward)
      all.push_back({TaskKind::Forward, stage, microbatch});
    if (kind == TaskKind::Backward && stage + 1 < problem_.stages())
      all.push_back({kind, stage + 1, microbatch});
    if (kind == TaskKind::Weight)
      all.push_back({TaskKind::Backward, stage, microbatch});
    return all;
  }

  Fault completeAndInOrder() {
    const int kinds = problem_.splitsWeights() ? 3 : 2;
    for (int kind = 0; kind < kinds; ++kind)
      for (int64_t stage = 0; stage < problem_.stages(); ++stage)
        for (int64_t microbatch = 0; microbatch < problem_.microbatches; ++microbatch)
          if (beginOf(TaskKind(kind), stage, microbatch) == absent)
            return describe({TaskKind(kind), stage, microbatch}) + " is missing";
    for (const std::vector<PipelineTask> &tasks : order_.byRank)
      for (const PipelineTask &task : tasks)
        for (const PipelineTask &earlier : needs(task))
          if (Fault fault = before(earlier, task))
            return fault;
    return std::nullopt;
  }

  Fault inFlight() const {
    const auto stages = size_t(problem_.stages());
    if (order_.inFlight.size() != stages)
      return "micro-batches in flight for " + text(int64_t(order_.inFlight.size())) + " stages, not " +
             text(problem_.stages());
    const TaskKind last = problem_.splitsWeights() ? TaskKind::Weight : TaskKind::Backward;
    std::vector<int64_t> now(stages, 0), most(stages, 0);
    for (size_t rank = 0; rank < order_.byRank.size(); ++rank) {
      int64_t onRank = 0;
      for (const PipelineTask &task : order_.byRank[rank]) {
        const int64_t change = task.kind == TaskKind::Forward ? 1 : task.kind == last ? -1 : 0;
        onRank += change;
        now[size_t(task.stage)] += change;
        most[size_t(task.stage)] = std::max(most[size_t(task.stage)], now[size_t(task.stage)]);
        if (onRank > problem_.inFlightLimit(task.stage))
          return "with " + describe(task) + " rank " + text(int64_t(rank)) + " has " + text(onRank) +
                 " micro-batches in flight; " + std::string(name(problem_.kind)) + " allows " +
                 text(problem_.inFlightLimit(task.stage));
      }
    }
    for (size_t stage = 0; stage < stages; ++stage)
      if (order_.inFlight[stage] != most[stage])
        return "stage " + text(int64_t(stage)) + " has " + text(most[stage]) + " micro-batches in flight, not " +
               text(order_.inFlight[stage]);
    return std::nullopt;
  }

  Fault figures() const {
    double length = 0, busy = 0;
    for (size_t rank = 0; rank < order_.byRank.size(); ++rank)
      for (size_t i = 0; i < order_.byRank[rank].size(); ++i) {
        const double time = duration(order_.byRank[rank][i].kind);
        busy += time;
        length = std::max(length, order_.begin[rank][i] + time);
      }
    if (std::abs(length - order_.length) > slack_)
      return "the order is " + std::to_string(length) + " seconds long, not " + std::to_string(order_.length);
    const double bubble = length > 0 ? 1 - busy / (length * double(problem_.ranks)) : 0;
    if (std::abs(bubble - order_.bubbleFraction) > 1e-9)
      return "the bubble is " + std::to_string(bubble) + " of the step, not " + std::to_string(order_.bubbleFraction);
    return std::nullopt;
  }

  const ScheduleProblem &problem_;
  const TaskOrder &order_;
  std::array<std::vector<double>, 3> begin_; // by kind; [stage * microbatches + microbatch]
  double slack_;                             // seconds, for sums in another order
};

} // namespace

std::optional<std::string> verify(const ScheduleProblem &problem, const TaskOrder &order) {
  return Verifier(problem, order).run();
}

} // namespace ds::scheduling
