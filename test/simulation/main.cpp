//===- main.cpp - simulate: the runtime under seeds -----------------------===//
//
//   simulate --seeds 0-2999              stops at the first seed that breaks the invariant; exit code 1
//   simulate --seed 1234                 one seed, with a log of what happened
//   simulate --planted                   the names of the planted bugs, each with what it does
//   simulate --planted NAME --seeds A-B  a runtime with that bug
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "test/simulation/Faults.h"
#include "test/simulation/ProcessSimulation.h"
#include "test/simulation/Simulation.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace ds::sim {
namespace {

const std::vector<std::pair<std::string, std::string>> plantedBugs = {
#include "PlantedBugs.inc"
};

struct Options {
  uint64_t first = 0, last = 2999;
  bool log = false;
};

void show(uint64_t seed, const Verdict &verdict) {
  std::printf("seed %llu (%s): %s\n", static_cast<unsigned long long>(seed), verdict.scenario.c_str(),
              verdict.broken.empty() ? "as it should be" : verdict.broken.c_str());
  if (!verdict.error.empty())
    std::printf("  the run ended with: %s\n", verdict.error.c_str());
  std::printf("%s", verdict.outcome.report.c_str());
  std::printf("  %llu ticks, %.6f s of simulated time, path %016llx\n",
              static_cast<unsigned long long>(verdict.outcome.ticks), double(verdict.outcome.time.count()) * 1e-9,
              static_cast<unsigned long long>(verdict.outcome.path));
}

int run(const Options &options) {
  const auto begin = std::chrono::steady_clock::now();
  const Simulation ranks;
  const ProcessSimulation processes;
  uint64_t failures = 0, stalls = 0, ticks = 0;
  for (uint64_t seed = options.first; seed <= options.last; ++seed) {
    const Verdict verdict = seed % 4 == 3 ? processes.run(seed, options.log) : ranks.run(seed, options.log);
    ticks += verdict.outcome.ticks;
    failures += verdict.error.empty() ? 0 : 1;
    stalls += verdict.stalled ? 1 : 0;
    if (options.log || !verdict.broken.empty())
      show(seed, verdict);
    if (!verdict.broken.empty()) {
      std::printf("replay it by: simulate --seed %llu%s%s\n", static_cast<unsigned long long>(seed),
                  plantedBug.empty() ? "" : " --planted ", plantedBug.c_str());
      return 1;
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const uint64_t count = options.last - options.first + 1;
  using Wide = unsigned long long;
  std::printf("%llu seeds held: %llu ended with an error, as they should, of which %llu blame the rank that stood "
              "still; %.0f seeds/s, %.0f ns a tick\n",
              Wide(count), Wide(failures), Wide(stalls), double(count) / seconds,
              seconds * 1e9 / double(std::max<uint64_t>(ticks, 1)));
  return 0;
}

int usage() {
  std::fprintf(stderr, "usage: simulate [--seeds FIRST-LAST | --seed NUMBER] [--planted [NAME]]\n");
  return 2;
}

int listBugs() {
  for (const auto &[bug, meaning] : plantedBugs)
    std::printf("%-26s %s\n", bug.c_str(), meaning.c_str());
  return 0;
}

int main(const std::vector<std::string> &arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--planted" && i + 1 == arguments.size())
      return listBugs();
    if (i + 1 == arguments.size())
      return usage();
    const std::string &value = arguments[i + 1];
    if (arguments[i] == "--planted") {
      if (std::none_of(plantedBugs.begin(), plantedBugs.end(), [&](const auto &bug) { return bug.first == value; }))
        return usage();
      plantedBug = value;
    } else if (arguments[i] == "--seed") {
      options = {std::strtoull(value.c_str(), nullptr, 10), std::strtoull(value.c_str(), nullptr, 10), true};
    } else if (const size_t dash = value.find('-'); arguments[i] == "--seeds" && dash != std::string::npos) {
      options = {std::strtoull(value.c_str(), nullptr, 10), std::strtoull(value.c_str() + dash + 1, nullptr, 10),
                 false};
    } else {
      return usage();
    }
    ++i;
  }
  return run(options);
}

} // namespace
} // namespace ds::sim

int main(int count, char **arguments) {
  try {
    return ds::sim::main({arguments + 1, arguments + count});
  } catch (const ds::Error &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
