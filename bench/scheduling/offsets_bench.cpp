// Seconds to pack each public instance into its capacity. DS_DATA_DIR names the folder above minimalloc/.
#include "compiler/scheduling/OffsetProblem.h"
#include "test/unit/scheduling/PublicInstances.h"

#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>

namespace {

using namespace ds::scheduling;

void pack(benchmark::State &state, const Published &instance) {
  OffsetProblem problem = readInstance(minimallocFolder() / instance.file);
  problem.capacity = instance.capacity;
  for (auto _ : state) {
    const auto offsets = searchMonotone(problem, 1'000'000);
    if (!offsets || problem.verify(*offsets))
      return state.SkipWithError("not packed");
  }
}

/// Those that are there.
const bool registered = [] {
  for (const Published &instance : publicInstances)
    if (std::filesystem::exists(minimallocFolder() / instance.file))
      benchmark::RegisterBenchmark((std::string("pack/") + instance.file).c_str(), pack, instance)
          ->Unit(benchmark::kSecond);
  return true;
}();

} // namespace
