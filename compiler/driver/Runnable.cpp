//===- Runnable.cpp - whether ds-run can run a plan -----------------------===//
#include "compiler/driver/Runnable.h"

#include "compiler/report/Facts.h"
#include "compiler/report/Fit.h"
#include "core/Error.h"

#include <algorithm>
#include <cstdint>
#include <vector>

using namespace ds;
using namespace ds::driver;

namespace {

constexpr int minCapability = 80; // of the devices that kernels/cuda is built for
// Commands of a plan that is made again.
constexpr int maxCommands = 4000;         // a second or so each
constexpr int maxRepeatedCommands = 1500; // where the level of recompute is searched for: some 20 plans for one
constexpr int maxSearchedCommands = 400;  // where what leaves is searched for: some 50 plans for one

struct Change {
  std::string what;
  std::vector<std::string> sets;
};

int commandsOf(const plan::proto::Plan &plan) {
  int commands = 0;
  for (const plan::proto::Role &role : plan.roles())
    for (const plan::proto::Routine &routine : role.routines())
      commands += routine.commands_size();
  return commands;
}

uint64_t deviceBytes(const plan::proto::Plan &plan) {
  uint64_t most = 0;
  for (const report::FitSpace &space : report::fitSpaces(plan))
    if (space.space == "device")
      most = std::max(most, space.needed);
  return most;
}

/// From the one that costs least time.
std::vector<Change> changesOf(const config::Config &config, const plan::proto::Plan &plan) {
  std::vector<Change> changes;
  const auto set = [](const std::string &key, int64_t value) { return key + "=" + std::to_string(value); };
  // With one micro-batch a step, stage 1 holds no more than stage 2.
  const bool accumulates = plan.training().accumulation_steps() > 1;
  if (const int64_t stage = config.zero.stage == 1 && !accumulates ? 3 : config.zero.stage + 1;
      config.ranks > 1 && stage <= 3)
    changes.push_back({"zero_optimization.stage " + std::to_string(stage), {set("zero_optimization.stage", stage)}});
  if (const uint64_t micro = plan.training().micro_batch_size(), steps = plan.training().accumulation_steps();
      micro % 2 == 0)
    changes.push_back({"train_micro_batch_size_per_gpu " + std::to_string(micro / 2) +
                           " and gradient_accumulation_steps " + std::to_string(2 * steps),
                       {set("train_micro_batch_size_per_gpu", int64_t(micro / 2)),
                        set("gradient_accumulation_steps", int64_t(2 * steps))}});
  const int64_t stages = 2 * config.pipeline.stages;
  if (config.worldRanks % (stages * config.tensor.size) == 0)
    changes.push_back(
        {"deepstatic.pipeline.stages " + std::to_string(stages), {set("deepstatic.pipeline.stages", stages)}});
  return changes;
}

/// For a plan that lacks memory: changes of the request, and the device memory that each needs.
struct Advice {
  std::string sentence; // empty where none needs less, or plans are too large to make several
  std::string tryLine;  // the flags of the first that fits
};

Advice adviceFor(const CompileRequest &request, const plan::proto::Plan &plan) {
  Advice advice;
  config::ConfigOverrides ranks;
  ranks.ranks = request.overrides.ranks;
  const config::Config config = config::resolveConfig(plan.config_json(), ranks);
  const bool searchesLevel = config.recompute.mode == config::Recompute::Mode::Auto;
  if (commandsOf(plan) > (config.offloadAuto ? maxSearchedCommands : searchesLevel ? maxRepeatedCommands : maxCommands))
    return advice;
  for (const Change &change : changesOf(config, plan)) {
    CompileRequest changed = request;
    changed.emit = Emit::PlanFile;
    changed.progress = [](const char *) {};
    changed.overrides.sets.insert(changed.overrides.sets.end(), change.sets.begin(), change.sets.end());
    try {
      const plan::proto::Plan other = compile(changed).plan;
      if (deviceBytes(other) >= deviceBytes(plan))
        continue;
      const bool fits = report::shortageOf(other).empty();
      advice.sentence += (advice.sentence.empty() ? "" : ", ") + ("with " + change.what) + " it needs " +
                         report::bytesText(deviceBytes(other)) + (fits ? ", which fits" : "");
      if (fits && advice.tryLine.empty())
        for (const std::string &set : change.sets)
          advice.tryLine += (advice.tryLine.empty() ? "--set " : " --set ") + set;
    } catch (const Error &) { // a change that the rest of the configuration does not allow
    }
  }
  return advice;
}

} // namespace

std::string ds::driver::whyNoKernels(const plan::proto::Plan &plan) {
  const int capability = config::computeCapability(plan.machine().isa());
  if (plan.machine().device() != "cuda" || capability == 0 || capability >= minCapability)
    return "";
  return "machine " + plan.machine().name() + " has isa " + plan.machine().isa() + ", but ds-run's kernels need sm_" +
         std::to_string(minCapability) + " or later; --machine a100-80gx8 works, or --machine cpu";
}

void ds::driver::requireRunnable(const CompileRequest &request, const plan::proto::Plan &plan) {
  if (const std::string why = whyNoKernels(plan); !why.empty())
    throw Error(why);
  if (const std::string shortage = report::shortageOf(plan); !shortage.empty()) {
    const Advice advice = adviceFor(request, plan);
    throw Error(shortage + (advice.sentence.empty() ? "" : "; " + advice.sentence), advice.tryLine);
  }
}
