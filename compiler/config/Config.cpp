//===- Config.cpp - from the user's text to what holds --------------------===//
#include "compiler/config/Config.h"

#include "compiler/config/Machine.h"
#include "compiler/config/Resolver.h"
#include "core/Error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ds::config {
namespace {

void resolveClipping(Resolver &resolver, Config &config) {
  static constexpr std::string_view path = "gradient_clipping";
  const double norm = resolver.numberOrDefault(path);
  if (norm < 0)
    return resolver.refuse(path, "it is the largest global norm of the gradients; write 0 for no clipping");
  if (norm > 0)
    config.gradientClipping = norm;
}

void resolveMemory(Resolver &resolver, const ConfigOverrides &overrides, Config &config) {
  static constexpr std::string_view path = "deepstatic.device_memory";
  const auto text = resolver.string(path);
  const auto bytes = resolver.integer(path);
  try {
    if (text)
      config.deviceMemory = parseBytes(*text, path);
    else
      config.deviceMemory = bytes;
  } catch (const Error &) {
    return resolver.refuse(path, "write a number of bytes or a size such as \"2GiB\"");
  }
  if (config.deviceMemory && *config.deviceMemory <= 0)
    return resolver.refuse(path, "it must be more than 0 bytes");
  if (overrides.deviceMemory)
    config.deviceMemory = overrides.deviceMemory;
  config.hostMemory = overrides.hostMemory;
}

Monitor readMonitor(const Resolver &resolver, const std::string &section) {
  if (!resolver.booleanOrDefault(section + ".enabled"))
    return {};
  return {true, resolver.stringOrDefault(section + ".output_path"), resolver.stringOrDefault(section + ".job_name")};
}

} // namespace

Config resolveConfig(std::string_view hjsonText, const ConfigOverrides &overrides) {
  if (overrides.ranks < 1 || overrides.ranks > int64_t(1) << 20)
    throw ConfigError("--ranks is " + std::to_string(overrides.ranks) + "; it must be at least 1 (and at most 2^20)");
  if (overrides.deviceMemory && *overrides.deviceMemory <= 0)
    throw ConfigError("--device-memory is " + std::to_string(*overrides.deviceMemory) +
                      "; it must be more than 0 bytes");
  Config config;
  config.ranks = config.worldRanks = overrides.ranks;
  try {
    Resolver resolver(hjsonText, overrides);
    resolver.answerKeys();
    resolvePipeline(resolver, config);
    resolveBatchSizes(resolver, config);
    checkMicrobatches(resolver, config);
    config.bf16 = resolver.booleanOrDefault("bf16.enabled");
    config.lossByTokens = resolver.stringOrDefault("deepstatic.loss_normalization") == "tokens";
    resolveOptimizer(resolver, config);
    resolveScheduler(resolver, config);
    resolveParameterGroups(resolver, config);
    resolveClipping(resolver, config);
    resolveZero(resolver, config);
    resolveRecompute(resolver, config);
    resolveMemory(resolver, overrides, config);
    config.tensorboard = readMonitor(resolver, "tensorboard");
    config.csvMonitor = readMonitor(resolver, "csv_monitor");
    config.tf32 = resolver.booleanOrDefault("deepstatic.tf32");
    resolver.finish(config);
  } catch (const ConfigError &) {
    throw;
  } catch (const Error &unreadable) {
    throw ConfigError(unreadable.what(), {}, {}, unreadable.tryLine);
  }
  return config;
}

std::string_view name(Optimizer::Type type) {
  switch (type) {
  case Optimizer::Type::None:
    return "none";
  case Optimizer::Type::AdamW:
    return "AdamW";
  case Optimizer::Type::Sgd:
    return "SGD";
  case Optimizer::Type::Adagrad:
    return "Adagrad";
  case Optimizer::Type::Lion:
    return "Lion";
  }
  return {};
}

std::string_view name(Scheduler::Type type) {
  switch (type) {
  case Scheduler::Type::None:
    return "none";
  case Scheduler::Type::WarmupLR:
    return "WarmupLR";
  case Scheduler::Type::WarmupDecayLR:
    return "WarmupDecayLR";
  case Scheduler::Type::WarmupCosineLR:
    return "WarmupCosineLR";
  case Scheduler::Type::LRRangeTest:
    return "LRRangeTest";
  case Scheduler::Type::OneCycle:
    return "OneCycle";
  }
  return "?";
}

std::string_view name(Scheduler::Warmup warmup) { return warmup == Scheduler::Warmup::Log ? "log" : "linear"; }

} // namespace ds::config
