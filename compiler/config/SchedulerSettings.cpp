//===- SchedulerSettings.cpp - the warm-up schedules ----------------------===//
#include "compiler/config/Config.h"
#include "compiler/config/KeyRules.h"
#include "compiler/config/Resolver.h"
#include <cstdint>
#include <string>
#include <string_view>

namespace ds::config {
namespace {

constexpr int64_t maxSteps = int64_t(1) << 53; // counted in float64 without loss

double readRate(Resolver &resolver, std::string_view path) {
  const double rate = resolver.numberOrDefault(path);
  if (!(rate >= 0 && rate <= 1e300))
    resolver.refuse(path, "it must be at least 0");
  return rate;
}

int64_t readSteps(Resolver &resolver, std::string_view path, int64_t least) {
  const int64_t steps = resolver.integerOrDefault(path);
  if (resolver.integer(path) && (steps < least || steps > maxSteps))
    resolver.refuse(path, "it must be at least " + std::to_string(least) + " (and at most 2^53)");
  return steps;
}

Scheduler::Type typeOf(std::string_view name) {
  return name == "WarmupLR"        ? Scheduler::Type::WarmupLR
         : name == "WarmupDecayLR" ? Scheduler::Type::WarmupDecayLR
                                   : Scheduler::Type::WarmupCosineLR;
}

} // namespace

void resolveScheduler(Resolver &resolver, Config &config) {
  Scheduler &scheduler = config.scheduler;
  const auto type = resolver.string("scheduler.type");
  if (!type) {
    if (resolver.find("scheduler.params"))
      resolver.refuse("scheduler.type", "scheduler.params needs it; WarmupLR, WarmupDecayLR and WarmupCosineLR are "
                                        "available");
    return;
  }
  const auto known = availableScheduler(*type);
  if (!known)
    return resolver.refuse("scheduler.type",
                           "this schedule is not available; WarmupLR, WarmupDecayLR and WarmupCosineLR are");
  scheduler.type = typeOf(*known);
  static constexpr std::string_view most = "scheduler.params.warmup_max_lr";
  scheduler.warmupMinLr = readRate(resolver, "scheduler.params.warmup_min_lr");
  scheduler.warmupMaxLr = readRate(resolver, most);
  if (scheduler.type == Scheduler::Type::WarmupLR && !resolver.find(most))
    scheduler.warmupMaxLr = config.optimizer.lr;
  scheduler.warmupMinRatio = readRate(resolver, "scheduler.params.warmup_min_ratio");
  scheduler.cosMinRatio = readRate(resolver, "scheduler.params.cos_min_ratio");
  scheduler.warmupNumSteps = readSteps(resolver, "scheduler.params.warmup_num_steps", 0);
  scheduler.totalNumSteps = readSteps(resolver, "scheduler.params.total_num_steps", 1);
  if (scheduler.type != Scheduler::Type::WarmupLR && !resolver.find("scheduler.params.total_num_steps"))
    resolver.refuse("scheduler.params.total_num_steps",
                    std::string(*known) + " needs the number of updates after which the decay ends");
  // Any other text than "log" and "linear" was refused.
  if (resolver.stringOrDefault("scheduler.params.warmup_type").size() == std::string_view("linear").size())
    scheduler.warmup = Scheduler::Warmup::Linear;
}

} // namespace ds::config
