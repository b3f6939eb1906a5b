//===- PipelineSchedule.cpp - an order of tasks for each rank -------------===//
//
// A schedule is a comparator: what comes before what on one rank. All are one merge of up to three ascending
// sequences of tasks, and differ in how far the backwards trail the forwards, and the weight gradients both. A replay
// in simulated time then gives each task its beginning.
//
//===----------------------------------------------------------------------===//
#include "compiler/scheduling/PipelineSchedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

constexpr int64_t maxTasks = 10'000'000; // forwards; far above any plan, and well within memory

std::string text(int64_t number) { return std::to_string(number); }

/// How many forwards rank k has begun before its first backward, less one; more than there are means all.
int64_t warmUp(const ScheduleProblem &problem, int64_t rank) {
  const int64_t after = problem.ranks - 1 - rank; // ranks behind this one
  switch (problem.kind) {
  case PipelineSchedule::GPipe:
  case PipelineSchedule::AccumulateByLayer:
    return problem.microbatches * problem.chunks;
  case PipelineSchedule::Interleaved:
    return 2 * after + (problem.chunks - 1) * problem.ranks;
  case PipelineSchedule::OneFOneB:
  case PipelineSchedule::ZeroBubbleH1:
    return after;
  }
  std::abort();
}

/// Places of a rank's n-th forward, backward and weight gradients in its order: the n-th backward directly follows
/// forward n + warm-up. Weight gradients follow forward n + ranks - 1 on every rank, so that each keeps as many
/// micro-batches as the first one does anyway.
int64_t placeOfForward(int64_t n) { return 3 * n; }
int64_t placeOfBackward(const ScheduleProblem &problem, int64_t rank, int64_t n) {
  return 3 * (n + warmUp(problem, rank)) + 1;
}
int64_t placeOfWeight(const ScheduleProblem &problem, int64_t n) { return 3 * (n + problem.ranks - 1) + 2; }

/// A rank's n-th forward or backward: groups of micro-batches, as many as there are ranks or all of them, go through
/// one chunk after the other.
PipelineTask nthTask(const ScheduleProblem &problem, TaskKind kind, int64_t rank, int64_t n) {
  const int64_t group = problem.kind == PipelineSchedule::AccumulateByLayer ? problem.microbatches : problem.ranks;
  const int64_t round = group * problem.chunks;
  if (problem.chunks == 1)
    return {kind, rank, n};
  const int64_t step = n % round / group;
  const int64_t chunk = kind == TaskKind::Forward ? step : problem.chunks - 1 - step;
  return {kind, chunk * problem.ranks + rank, n / round * group + n % group};
}

std::vector<PipelineTask> orderOf(const ScheduleProblem &problem, int64_t rank) {
  std::vector<std::pair<int64_t, PipelineTask>> placed;
  const int64_t tasks = problem.microbatches * problem.chunks;
  for (int64_t n = 0; n < tasks; ++n) {
    placed.emplace_back(placeOfForward(n), nthTask(problem, TaskKind::Forward, rank, n));
    placed.emplace_back(placeOfBackward(problem, rank, n), nthTask(problem, TaskKind::Backward, rank, n));
    if (problem.splitsWeights())
      placed.emplace_back(placeOfWeight(problem, n), nthTask(problem, TaskKind::Weight, rank, n));
  }
  // No two tasks have the same place: the kind is its remainder by 3.
  std::sort(placed.begin(), placed.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<PipelineTask> order;
  order.reserve(placed.size());
  for (const auto &[place, task] : placed)
    order.push_back(task);
  return order;
}

/// By stage: forwards done less micro-batches finished, at most.
std::vector<int64_t> maxInFlight(const ScheduleProblem &problem, const std::vector<std::vector<PipelineTask>> &byRank) {
  const TaskKind last = problem.splitsWeights() ? TaskKind::Weight : TaskKind::Backward;
  std::vector<int64_t> now(size_t(problem.stages()), 0), most = now;
  for (const std::vector<PipelineTask> &order : byRank)
    for (const PipelineTask &task : order) {
      const auto stage = size_t(task.stage);
      now[stage] += int64_t(task.kind == TaskKind::Forward) - int64_t(task.kind == last);
      most[stage] = std::max(most[stage], now[stage]);
    }
  return most;
}

/// Runs given orders in simulated time: each rank its next task as soon as the rank is free and what it needs is there.
class Replay {
public:
  Replay(const ScheduleProblem &problem, const std::vector<std::vector<PipelineTask>> &byRank, const StageCosts &costs)
      : problem_(problem), byRank_(byRank), costs_(costs), free_(byRank.size(), 0) {
    const size_t tasks = size_t(problem.stages() * problem.microbatches);
    for (std::vector<double> &ends : end_)
      ends.assign(tasks, notYet);
    timeline_.begin.resize(byRank.size());
  }

  std::optional<Timeline> run() {
    std::vector<size_t> awake;
    for (size_t rank = byRank_.size(); rank-- > 0;)
      awake.push_back(rank);
    while (!awake.empty()) {
      const size_t rank = awake.back();
      awake.pop_back();
      advance(rank, awake);
    }
    double busy = 0;
    for (size_t rank = 0; rank < byRank_.size(); ++rank) {
      if (timeline_.begin[rank].size() != byRank_[rank].size())
        return std::nullopt;
      timeline_.length = std::max(timeline_.length, free_[rank]);
      for (const PipelineTask &task : byRank_[rank])
        busy += costOf(task);
    }
    const double whole = timeline_.length * double(byRank_.size());
    timeline_.bubbleFraction = whole > 0 ? std::max(0.0, 1 - busy / whole) : 0;
    return std::move(timeline_);
  }

private:
  static constexpr double notYet = -1;

  double &endOf(TaskKind kind, int64_t stage, int64_t microbatch) {
    return end_[size_t(kind)][size_t(stage * problem_.microbatches + microbatch)];
  }

  double costOf(const PipelineTask &task) const {
    const std::vector<double> &costs = task.kind == TaskKind::Forward    ? costs_.forward
                                       : task.kind == TaskKind::Backward ? costs_.backward
                                                                         : costs_.weight;
    return costs[size_t(task.stage)];
  }

  /// When what the task needs is there, or notYet.
  double readyAt(const PipelineTask &task) {
    const auto &[kind, stage, microbatch] = task;
    if (kind == TaskKind::Forward)
      return stage == 0 ? 0 : endOf(TaskKind::Forward, stage - 1, microbatch);
    if (kind == TaskKind::Weight)
      return endOf(TaskKind::Backward, stage, microbatch);
    const double kept = endOf(TaskKind::Forward, stage, microbatch);
    if (stage == problem_.stages() - 1)
      return kept;
    const double gradient = endOf(TaskKind::Backward, stage + 1, microbatch);
    return kept == notYet || gradient == notYet ? notYet : std::max(kept, gradient);
  }

  /// Runs `rank` until its next task lacks something; adds to `awake` whom this helps on.
  void advance(size_t rank, std::vector<size_t> &awake) {
    std::vector<double> &begin = timeline_.begin[rank];
    while (begin.size() < byRank_[rank].size()) {
      const PipelineTask &task = byRank_[rank][begin.size()];
      const double ready = readyAt(task);
      if (ready == notYet)
        return;
      begin.push_back(std::max(ready, free_[rank]));
      free_[rank] = begin.back() + costOf(task);
      endOf(task.kind, task.stage, task.microbatch) = free_[rank];
      const int64_t next = task.stage + (task.kind == TaskKind::Forward ? 1 : -1);
      if (task.kind != TaskKind::Weight && next >= 0 && next < problem_.stages())
        awake.push_back(size_t(problem_.rankOf(next)));
    }
  }

  const ScheduleProblem &problem_;
  const std::vector<std::vector<PipelineTask>> &byRank_;
  const StageCosts &costs_;
  std::array<std::vector<double>, 3> end_; // by kind; [stage * microbatches + microbatch]
  std::vector<double> free_;               // by rank, the end of what it ran last
  Timeline timeline_;
};

} // namespace

const std::vector<std::string_view> &pipelineScheduleNames() {
  static const std::vector<std::string_view> names{"gpipe", "1f1b", "interleaved", "zb-h1", "accumulate-by-layer"};
  return names;
}

std::string_view name(PipelineSchedule schedule) { return pipelineScheduleNames()[size_t(schedule)]; }

std::optional<PipelineSchedule> pipelineScheduleFromName(std::string_view name) {
  const std::vector<std::string_view> &names = pipelineScheduleNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    return std::nullopt;
  return PipelineSchedule(found - names.begin());
}

int64_t ScheduleProblem::inFlightLimit(int64_t stage) const {
  const int64_t tasks = microbatches * chunks;
  if (splitsWeights())
    return std::min(tasks, ranks);
  return std::min(tasks, warmUp(*this, rankOf(stage)) + 1);
}

std::optional<std::string> ScheduleProblem::check() const {
  if (ranks < 1 || microbatches < 1 || chunks < 1)
    return "a pipeline of " + text(ranks) + " ranks, " + text(chunks) + " chunks and " + text(microbatches) +
           " micro-batches has nothing to run; each must be at least 1";
  if (ranks > maxTasks / chunks || ranks * chunks > maxTasks / microbatches)
    return text(microbatches) + " micro-batches through " + text(ranks) + " x " + text(chunks) +
           " stages are more than the " + text(maxTasks) +
           " forwards that a schedule may hold; fewer micro-batches fit";
  if (kind == PipelineSchedule::Interleaved && chunks < 2)
    return "the schedule interleaved needs at least 2 chunks a rank, not " + text(chunks) + "; with 1 it is 1f1b";
  if (kind == PipelineSchedule::AccumulateByLayer && ranks != 1)
    return "the schedule accumulate-by-layer runs on 1 rank along the pipe, not " + text(ranks) +
           "; the other schedules run on several";
  if (kind != PipelineSchedule::Interleaved && kind != PipelineSchedule::AccumulateByLayer && chunks != 1)
    return "the schedule " + std::string(name(kind)) + " runs 1 chunk a rank, not " + text(chunks) +
           "; interleaved runs several";
  if (kind == PipelineSchedule::Interleaved && microbatches % ranks != 0)
    return "the schedule interleaved takes micro-batches in groups of its " + text(ranks) + " ranks, and " +
           text(microbatches) + " is not divisible by " + text(ranks) + "; " +
           text((microbatches / ranks + 1) * ranks) + " would be";
  for (double time : {forward, backward, weight})
    if (!(time >= 0) || !std::isfinite(time))
      return "a task takes " + std::to_string(time) + " seconds; it must be a number of at least 0";
  return std::nullopt;
}

std::optional<Timeline> simulate(const ScheduleProblem &problem, const std::vector<std::vector<PipelineTask>> &byRank,
                                 const StageCosts &costs) {
  return Replay(problem, byRank, costs).run();
}

TaskOrder schedulePipeline(const ScheduleProblem &problem) {
  TaskOrder order;
  for (int64_t rank = 0; rank < problem.ranks; ++rank)
    order.byRank.push_back(orderOf(problem, rank));
  const auto stages = size_t(problem.stages());
  const StageCosts costs{std::vector<double>(stages, problem.forward), std::vector<double>(stages, problem.backward),
                         std::vector<double>(stages, problem.weight)};
  static_cast<Timeline &>(order) = simulate(problem, order.byRank, costs).value();
  order.inFlight = maxInFlight(problem, order.byRank);
  return order;
}

} // namespace ds::scheduling
