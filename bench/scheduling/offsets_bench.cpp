// Seconds to pack each public instance into its capacity. DS_DATA_DIR names the folder above minimalloc/.
#include "compiler/scheduling/OffsetProblem.h"
#include "test/unit/scheduling/PublicInstances.h"

#include <benchmark/benchmark.h>

#include <iterator>

namespace {

using namespace ds::scheduling;

void packPublicInstance(benchmark::State &state) {
  const Published &instance = publicInstances[state.range(0)];
  OffsetProblem problem = readInstance(minimallocFolder() / instance.file);
  problem.capacity = instance.capacity;
  state.SetLabel(instance.file);
  if (problem.buffers.size() != instance.buffers)
    return state.SkipWithError("this instance is not in DS_DATA_DIR");
  for (auto _ : state) {
    const auto offsets = searchMonotone(problem, 1'000'000);
    if (!offsets || problem.verify(*offsets))
      return state.SkipWithError("not packed");
  }
}

BENCHMARK(packPublicInstance)->DenseRange(0, std::size(publicInstances) - 1)->Unit(benchmark::kSecond);

} // namespace
