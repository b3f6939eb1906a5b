//===- PipelineSchedule.h - when each rank runs which stage ---------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ds::scheduling {

/// GPipe (Huang et al., arXiv 1811.06965): all forwards, then all backwards.
/// OneFOneB (PipeDream-Flush, arXiv 2006.09503): a backward as soon as a rank has forwards enough to keep the others
/// busy. Interleaved (Megatron-LM, arXiv 2104.04473): the same with several chunks of the model on each rank.
/// ZeroBubbleH1 (arXiv 2401.10241): 1F1B whose weight gradients are split off and delayed into what was idle time.
/// AccumulateByLayer (GreedySnake, arXiv 2512.17570): all micro-batches of a chunk before the next chunk, on one rank.
enum class PipelineSchedule { GPipe, OneFOneB, Interleaved, ZeroBubbleH1, AccumulateByLayer };

/// "gpipe", "1f1b", "interleaved", "zb-h1", "accumulate-by-layer".
std::string_view name(PipelineSchedule schedule);
std::optional<PipelineSchedule> pipelineScheduleFromName(std::string_view name);
/// All names, in the enumeration's order.
const std::vector<std::string_view> &pipelineScheduleNames();

enum class TaskKind : uint8_t { Forward, Backward, Weight }; // Weight: weight gradients, where they are split off

struct PipelineTask {
  TaskKind kind;
  int64_t stage, microbatch;

  bool operator==(const PipelineTask &) const = default;
};

/// Micro-batches that pass through ranks * chunks stages and back; stage s runs on rank s mod ranks.
struct ScheduleProblem {
  PipelineSchedule kind = PipelineSchedule::OneFOneB;
  int64_t ranks = 1, chunks = 1, microbatches = 1;
  // Time of a task, the same for all stages. `backward` holds the weight gradients' unless the schedule splits them
  // off.
  double forward = 1, backward = 2, weight = 0;

  int64_t stages() const { return ranks * chunks; }
  int64_t rankOf(int64_t stage) const { return stage % ranks; }
  bool splitsWeights() const { return kind == PipelineSchedule::ZeroBubbleH1; }
  /// The most micro-batches whose forward through `stage` is done and whose backward (with its weight gradients) is
  /// not. For chunks, the most on the stage's rank, all its chunks together.
  int64_t inFlightLimit(int64_t stage) const;
  /// Why the input makes no sense, or nothing. Run before anything else here.
  std::optional<std::string> check() const;
};

/// Tasks in time, nothing sent costs any. [rank][position in the rank's order].
struct Timeline {
  std::vector<std::vector<double>> begin;
  double length = 0;
  double bubbleFraction = 0; // share of the whole step that a rank stands idle, mean of all ranks
};

/// What each rank runs, in which order, and when if each task takes the problem's time.
struct TaskOrder : Timeline {
  std::vector<std::vector<PipelineTask>> byRank;
  std::vector<int64_t> inFlight; // by stage, see inFlightLimit; each chunk by itself
};

/// The order of the problem's schedule. Micro-batches ascend for each stage and kind of task, so gradients add up in
/// the order of one rank that has the whole model. With p ranks, m micro-batches and v chunks, and where a task of a
/// stage takes F, B, W, the bubble's share of the whole step is
///   GPipe, 1F1B       (p-1) / (m+p-1)
///   interleaved       (p-1) / (v*m+p-1)
///   accumulate by layer                             0, on its one rank
///   zero-bubble H1    (p-1) X / (m (F+B+W) + (p-1) X), X = max(F+B-W, F, B), for m >= p.
/// X is F+B-W, the paper's, where W <= min(F, B); otherwise no order that keeps at most p micro-batches in flight
/// reaches that: the first rank waits (p-1) B for its first backward, and the last begins (p-1) F late.
TaskOrder schedulePipeline(const ScheduleProblem &problem);

/// Time of the tasks of each stage.
struct StageCosts {
  std::vector<double> forward, backward, weight; // by stage; `weight` may be empty where nothing is split off
};

/// When the tasks of an order run if they take `costs`. Nothing if the order waits for itself. Needs every task to be
/// one of the problem's, on its rank.
std::optional<Timeline> simulate(const ScheduleProblem &problem, const std::vector<std::vector<PipelineTask>> &byRank,
                                 const StageCosts &costs);

/// Why `order` is wrong, or nothing: each task once on its rank, none before what it needs, one at a time on a rank,
/// micro-batches ascend, no more in flight than the schedule allows, and the figures are true. Knows no algorithm.
std::optional<std::string> verify(const ScheduleProblem &problem, const TaskOrder &order);

} // namespace ds::scheduling
