// A graph of 100,000 ops cut into 64 stages, and 64 stages run 512 micro-batches.
#include "compiler/scheduling/PipelinePartition.h"
#include "compiler/scheduling/PipelineSchedule.h"

#include <benchmark/benchmark.h>
#include <cstdint>
#include <random>

namespace {

using namespace ds::scheduling;

constexpr int64_t units = 100'000, stages = 64;

/// Times, bytes and kinds at random.
PartitionProblem randomGraph() {
  std::mt19937 random(1); // NOLINT(bugprone-random-generator-seed): the same problem each time
  PartitionProblem problem;
  for (int64_t i = 0; i < units; ++i) {
    const double seconds = double(random() % 1000) * 1e-6;
    const auto state = int64_t(random() % 1000), activation = int64_t(random() % 100);
    problem.units.push_back({seconds, state, activation, uint64_t(i % 50)});
  }
  for (int64_t i = 0; i <= units; ++i)
    problem.crossing.push_back(int64_t(random() % 1'000'000));
  problem.stages = stages;
  return problem;
}

void run(benchmark::State &state, const PartitionProblem &problem) {
  for (auto _ : state)
    benchmark::DoNotOptimize(partition(problem));
}

void partitionByTime(benchmark::State &state) { run(state, randomGraph()); }

void partitionByTimeAndBytes(benchmark::State &state) {
  PartitionProblem problem = randomGraph();
  problem.secondsPerByte = 1e-8;
  run(state, problem);
}

// A little more than is needed with 64 micro-batches in flight in the first stage and one in the last.
void partitionWithinMemory(benchmark::State &state) {
  PartitionProblem problem = randomGraph();
  for (int64_t stage = 0; stage < stages; ++stage)
    problem.inFlight.push_back(stages - stage);
  problem.memoryBytes = 3'600'000;
  run(state, problem);
}

// One op takes as long as 40 % of the others, so all positions may begin nearly every stage.
void partitionAroundALongOp(benchmark::State &state) {
  PartitionProblem problem = randomGraph();
  problem.units[70'000].seconds = 20;
  problem.secondsPerByte = 1e-6;
  run(state, problem);
}

void candidates(benchmark::State &state) {
  const PartitionProblem problem = randomGraph();
  for (auto _ : state)
    benchmark::DoNotOptimize(candidateCuts(problem));
}

void schedule(benchmark::State &state, PipelineSchedule kind, int64_t chunks) {
  const ScheduleProblem problem{kind, stages, chunks, 512, 1, 1, 1};
  for (auto _ : state)
    benchmark::DoNotOptimize(schedulePipeline(problem));
}

BENCHMARK(partitionByTime)->Unit(benchmark::kMillisecond);
BENCHMARK(partitionByTimeAndBytes)->Unit(benchmark::kMillisecond);
BENCHMARK(partitionWithinMemory)->Unit(benchmark::kMillisecond);
BENCHMARK(partitionAroundALongOp)->Unit(benchmark::kMillisecond);
BENCHMARK(candidates)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(schedule, one_f_one_b, PipelineSchedule::OneFOneB, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(schedule, interleaved, PipelineSchedule::Interleaved, 4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(schedule, zb_h1, PipelineSchedule::ZeroBubbleH1, 1)->Unit(benchmark::kMillisecond);

} // namespace
