//===- SchedulerSettings.cpp - the learning rate schedules ----------------===//
#include "compiler/config/Config.h"
#include "compiler/config/KeyRules.h"
#include "compiler/config/Resolver.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

Scheduler::Type typeOf(std::string_view type) {
  using enum Scheduler::Type;
  for (const Scheduler::Type one : {WarmupLR, WarmupDecayLR, WarmupCosineLR, LRRangeTest, OneCycle})
    if (type == name(one))
      return one;
  return None;
}

std::string available() {
  std::string list;
  const auto types = availableSchedulers();
  for (const std::string_view type : types)
    list += (list.empty() ? "" : type == types.back() ? " and " : ", ") + std::string(type);
  return list;
}

void readWarmup(Resolver &resolver, Config &config) {
  static constexpr std::string_view most = "scheduler.params.warmup_max_lr";
  Scheduler &scheduler = config.scheduler;
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
                    std::string(name(scheduler.type)) + " needs the number of updates after which the decay ends");
  // Any other text than "log" and "linear" was refused.
  if (resolver.stringOrDefault("scheduler.params.warmup_type").size() == std::string_view("linear").size())
    scheduler.warmup = Scheduler::Warmup::Linear;
}

void readRangeTest(Resolver &resolver, RangeTest &test) {
  test.minLr = readRate(resolver, "scheduler.params.lr_range_test_min_lr");
  test.stepRate = readRate(resolver, "scheduler.params.lr_range_test_step_rate");
  test.stepSize = readSteps(resolver, "scheduler.params.lr_range_test_step_size", 1);
  test.staircase = resolver.booleanOrDefault("scheduler.params.lr_range_test_staircase");
}

double readMomentum(Resolver &resolver, std::string_view path) {
  const double momentum = resolver.numberOrDefault(path);
  if (!(momentum >= 0 && momentum < 1))
    resolver.refuse(path, "it must be at least 0 and below 1");
  return momentum;
}

/// The second half is as the first unless it is written.
int64_t readSecond(Resolver &resolver, std::string_view path, int64_t first) {
  return resolver.integer(path) ? readSteps(resolver, path, 0) : first;
}

void readOneCycle(Resolver &resolver, OneCycle &cycle) {
  for (const std::string_view path : {"scheduler.params.cycle_min_lr", "scheduler.params.cycle_max_lr"})
    if (!resolver.find(path))
      resolver.refuse(path, "OneCycle needs the rates between which it cycles");
  cycle.minLr = readRate(resolver, "scheduler.params.cycle_min_lr");
  cycle.maxLr = readRate(resolver, "scheduler.params.cycle_max_lr");
  cycle.decayLrRate = readRate(resolver, "scheduler.params.decay_lr_rate");
  cycle.firstStep = readSteps(resolver, "scheduler.params.cycle_first_step_size", 1);
  cycle.secondStep = readSecond(resolver, "scheduler.params.cycle_second_step_size", cycle.firstStep);
  cycle.firstStairs = readSteps(resolver, "scheduler.params.cycle_first_stair_count", 0);
  cycle.secondStairs = readSecond(resolver, "scheduler.params.cycle_second_stair_count", cycle.firstStairs);
  cycle.decayStep = readSteps(resolver, "scheduler.params.decay_step_size", 0);
  cycle.cycleMomentum = resolver.booleanOrDefault("scheduler.params.cycle_momentum");
  cycle.minMomentum = readMomentum(resolver, "scheduler.params.cycle_min_mom");
  cycle.maxMomentum = readMomentum(resolver, "scheduler.params.cycle_max_mom");
  cycle.decayMomentumRate = readRate(resolver, "scheduler.params.decay_mom_rate");
}

/// The shape of a cycle, which rate and momentum share.
void appendCycle(std::vector<ScheduleParameter> &parameters, const OneCycle &cycle) {
  parameters.insert(parameters.end(), {{"cycle_first_step_size", cycle.firstStep},
                                       {"cycle_second_step_size", cycle.secondStep},
                                       {"cycle_first_stair_count", cycle.firstStairs},
                                       {"cycle_second_stair_count", cycle.secondStairs},
                                       {"decay_step_size", cycle.decayStep}});
}

std::vector<ScheduleParameter> warmupParameters(const Scheduler &s, const Optimizer &optimizer) {
  std::vector<ScheduleParameter> parameters = {{"warmup_num_steps", s.warmupNumSteps}, {"warmup_type", name(s.warmup)}};
  if (s.type == Scheduler::Type::WarmupCosineLR)
    parameters.insert(parameters.end(),
                      {{"lr", optimizer.lr}, {"warmup_min_ratio", s.warmupMinRatio}, {"cos_min_ratio", s.cosMinRatio}});
  else
    parameters.insert(parameters.end(), {{"warmup_min_lr", s.warmupMinLr}, {"warmup_max_lr", s.warmupMaxLr}});
  if (s.type != Scheduler::Type::WarmupLR)
    parameters.push_back({"total_num_steps", s.totalNumSteps});
  return parameters;
}

/// Says of optimizer.params.lr that a schedule with rates of its own does not read it.
void answerUnreadRate(Resolver &resolver, const Scheduler &scheduler) {
  std::string rates;
  switch (scheduler.type) {
  case Scheduler::Type::WarmupLR:
    if (!resolver.find("scheduler.params.warmup_max_lr"))
      return;
    [[fallthrough]];
  case Scheduler::Type::WarmupDecayLR:
    if (resolver.wasAuto("scheduler.params.warmup_max_lr"))
      return; // it is this rate
    rates = "warmup_min_lr and warmup_max_lr";
    break;
  case Scheduler::Type::LRRangeTest:
    rates = "lr_range_test_min_lr and lr_range_test_step_rate";
    break;
  case Scheduler::Type::OneCycle:
    rates = "cycle_min_lr and cycle_max_lr";
    break;
  default:
    return;
  }
  resolver.subsume("optimizer.params.lr",
                   "has no effect: the rates of " + std::string(name(scheduler.type)) + " follow from its " + rates);
}

} // namespace

std::vector<ScheduleParameter> rateParameters(const Scheduler &scheduler, const Optimizer &optimizer) {
  const RangeTest &test = scheduler.rangeTest;
  const OneCycle &cycle = scheduler.oneCycle;
  std::vector<ScheduleParameter> parameters;
  switch (scheduler.type) {
  case Scheduler::Type::None:
    return {{"lr", optimizer.lr}};
  case Scheduler::Type::LRRangeTest:
    return {{"lr_range_test_min_lr", test.minLr},
            {"lr_range_test_step_rate", test.stepRate},
            {"lr_range_test_step_size", test.stepSize},
            {"lr_range_test_staircase", int64_t(test.staircase)}};
  case Scheduler::Type::OneCycle:
    parameters = {{"cycle_min_lr", cycle.minLr}, {"cycle_max_lr", cycle.maxLr}, {"decay_lr_rate", cycle.decayLrRate}};
    appendCycle(parameters, cycle);
    return parameters;
  default:
    return warmupParameters(scheduler, optimizer);
  }
}

std::vector<ScheduleParameter> momentumParameters(const Scheduler &scheduler) {
  const OneCycle &cycle = scheduler.oneCycle;
  std::vector<ScheduleParameter> parameters = {{"cycle_min_mom", cycle.minMomentum},
                                               {"cycle_max_mom", cycle.maxMomentum},
                                               {"decay_mom_rate", cycle.decayMomentumRate}};
  appendCycle(parameters, cycle);
  return parameters;
}

bool cyclesMomentum(const Config &config) {
  return config.scheduler.type == Scheduler::Type::OneCycle && config.scheduler.oneCycle.cycleMomentum &&
         (config.optimizer.type == Optimizer::Type::AdamW || config.optimizer.type == Optimizer::Type::Lion ||
          config.optimizer.type == Optimizer::Type::Lamb);
}

void resolveScheduler(Resolver &resolver, Config &config) {
  Scheduler &scheduler = config.scheduler;
  const auto type = resolver.string("scheduler.type");
  if (!type) {
    if (resolver.find("scheduler.params"))
      resolver.refuse("scheduler.type", "scheduler.params needs it; " + available() + " are available");
    return;
  }
  const auto known = availableScheduler(*type);
  if (!known)
    return resolver.refuse("scheduler.type", "this schedule is not available; " + available() + " are");
  scheduler.type = typeOf(*known);
  if (scheduler.type == Scheduler::Type::LRRangeTest)
    readRangeTest(resolver, scheduler.rangeTest);
  else if (scheduler.type == Scheduler::Type::OneCycle)
    readOneCycle(resolver, scheduler.oneCycle);
  else
    readWarmup(resolver, config);
  answerUnreadRate(resolver, scheduler);
}

} // namespace ds::config
