//===- SchedulerSettings.cpp - the warm-up schedules ----------------------===//
#include "compiler/config/Config.h"
#include "compiler/config/KeyRules.h"
#include "compiler/config/Resolver.h"
#include <cstdint>
#include <string>
#include <string_view>

namespace ds::config {
namespace {

constexpr int64_t mostSteps = int64_t(1) << 53; // counted in float64 without loss

void readRate(Resolver &resolver, std::string_view path, double &value) {
  const auto written = resolver.number(path);
  if (written && !(*written >= 0 && *written <= 1e300))
    return resolver.refuse(path, "it must be at least 0");
  value = written.value_or(value);
}

void readSteps(Resolver &resolver, std::string_view path, int64_t least, int64_t &value) {
  const auto written = resolver.integer(path);
  if (written && (*written < least || *written > mostSteps))
    return resolver.refuse(path, "it must be at least " + std::to_string(least) + " (and at most 2^53)");
  value = written.value_or(value);
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
  if (scheduler.type == Scheduler::Type::WarmupLR)
    scheduler.warmupMaxLr = config.optimizer.lr;
  readRate(resolver, "scheduler.params.warmup_min_lr", scheduler.warmupMinLr);
  readRate(resolver, "scheduler.params.warmup_max_lr", scheduler.warmupMaxLr);
  readRate(resolver, "scheduler.params.warmup_min_ratio", scheduler.warmupMinRatio);
  readRate(resolver, "scheduler.params.cos_min_ratio", scheduler.cosMinRatio);
  readSteps(resolver, "scheduler.params.warmup_num_steps", 0, scheduler.warmupNumSteps);
  readSteps(resolver, "scheduler.params.total_num_steps", 1, scheduler.totalNumSteps);
  if (scheduler.type != Scheduler::Type::WarmupLR && !resolver.find("scheduler.params.total_num_steps"))
    resolver.refuse("scheduler.params.total_num_steps",
                    std::string(*known) + " needs the number of updates after which the decay ends");
  const auto warmup = resolver.string("scheduler.params.warmup_type");
  if (warmup && warmup->size() == std::string_view("linear").size()) // any other text than "log" was refused
    scheduler.warmup = Scheduler::Warmup::Linear;
}

} // namespace ds::config
