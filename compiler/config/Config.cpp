//===- Config.cpp - from the user's text to what holds --------------------===//
#include "compiler/config/Config.h"

#include "compiler/config/Machine.h"
#include "compiler/config/Resolver.h"
#include "core/Error.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

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

/// A key of fp16 that is a whole number.
int64_t readWhole(Resolver &resolver, const std::string &path, int64_t least, int64_t most) {
  const int64_t value = resolver.integerOrDefault(path);
  if (value < least || value > most)
    resolver.refuse(path, "it must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return value;
}

void resolvePrecision(Resolver &resolver, Config &config) {
  config.bf16 = resolver.booleanOrDefault("bf16.enabled");
  constexpr std::string_view keys[] = {"loss_scale", "initial_scale_power",    "loss_scale_window",
                                       "hysteresis", "consecutive_hysteresis", "min_loss_scale"};
  if (!resolver.booleanOrDefault("fp16.enabled")) {
    for (const std::string_view key : keys)
      resolver.subsume("fp16." + std::string(key), "has no effect while fp16.enabled is false");
    return;
  }
  if (config.bf16)
    return resolver.refuse("fp16.enabled", "so is bf16.enabled, and a plan computes in one of the two",
                           "--set fp16.enabled=false");
  constexpr int64_t most = int64_t(1) << 53; // steps
  Fp16 &fp16 = config.fp16.emplace();
  fp16.lossScale = resolver.numberOrDefault("fp16.loss_scale");
  fp16.minLossScale = resolver.numberOrDefault("fp16.min_loss_scale");
  fp16.initialScalePower = readWhole(resolver, "fp16.initial_scale_power", 0, 126);
  fp16.lossScaleWindow = readWhole(resolver, "fp16.loss_scale_window", 1, most);
  fp16.hysteresis = readWhole(resolver, "fp16.hysteresis", 1, most);
  fp16.consecutiveHysteresis = resolver.booleanOrDefault("fp16.consecutive_hysteresis");
  for (const auto &[path, value, zero] : {std::tuple("fp16.loss_scale", fp16.lossScale, true), //
                                          std::tuple("fp16.min_loss_scale", fp16.minLossScale, false)})
    if (!(value > 0 && double(float(value)) == value && value <= 0x1p126) && !(zero && value == 0))
      resolver.refuse(path, std::string(zero ? "it must be 0, for a dynamic scale, or" : "it must be") +
                                " a float32 above 0 and at most 2^126");
}

/// The name of the type that is computed in.
std::string name(const Config &config) { return config.fp16 ? "fp16" : config.bf16 ? "bf16" : "fp32"; }

/// What trained parameters and their state are kept in, where DeepSpeed does so; after all that says who updates them.
void resolveMasters(Resolver &resolver, Config &config) {
  static constexpr std::string_view states = "bf16.bf16_optimizer_states", stage = "zero_optimization.stage",
                                    away = "zero_optimization.offload_optimizer.device";
  if (!config.bf16 && !config.fp16)
    return;
  const std::string path = config.bf16 ? "bf16.bf16_master_weights_and_grads" : "fp16.fp16_master_weights_and_grads";
  const bool narrows = resolver.booleanOrDefault(path);
  config.narrowMoments = config.bf16 && resolver.booleanOrDefault(states);
  if (config.narrowMoments && !narrows)
    return resolver.refuse(states, "moments are bfloat16 where master weights are, and " + path + " is false",
                           "--set " + path + "=true");
  if (!narrows)
    return;
  config.masters = config.bf16 ? "bf16" : "f16";
  if (resolver.integerOrDefault(stage) == 0)
    resolver.refuse(path, std::string(stage) + " is 0, and master weights have 16 bits with stage 1, 2 or 3 alone",
                    "--set " + std::string(stage) + "=1");
  if (config.optimizer.type != Optimizer::Type::AdamW)
    resolver.refuse(path, "only Adam and AdamW update master weights of 16 bits; write one as optimizer.type",
                    "--set optimizer.type=AdamW");
  if (resolver.stringOrDefault(away) == "none" && !config.narrowMoments)
    resolver.refuse(path,
                    "with float32 moments the host updates such weights, and " + std::string(away) + " is \"none\"" +
                        (config.bf16 ? "; with " + std::string(states) + " the device may" : ""),
                    "--set " + std::string(away) + "=cpu");
}

/// What gradients are summed in, after the type that is computed in and the section zero_optimization.
void resolveSums(Resolver &resolver, Config &config) {
  static constexpr std::string_view path = "data_types.grad_accum_dtype", sent = "communication_data_type";
  const std::string type(resolver.string(path).value_or(config.masters.empty() ? "fp32" : name(config)));
  if (!config.masters.empty() && type == "fp32")
    resolver.refuse(path, "where master weights are " + name(config) + ", so are sums of gradients",
                    "--set data_types.grad_accum_dtype=" + name(config));
  if (type == "fp32")
    return;
  config.sums = type == "bf16" ? "bf16" : "f16";
  const std::string computed = name(config);
  if (computed != "fp32" && computed != type)
    resolver.refuse(path,
                    computed + ".enabled is true, and such gradients are summed in \"" + computed + "\" or \"fp32\"",
                    "--set data_types.grad_accum_dtype=" + computed);
  else if (computed == "fp32" && type == "fp16")
    resolver.refuse(path, "fp16.enabled is false, and without its loss scale sums beyond 65504 would be infinite",
                    "--set data_types.grad_accum_dtype=fp32");
  else if (computed == "fp32" && config.zero.stage == 0)
    resolver.refuse(path, "a float32 model sums gradients in 16 bits with ZeRO stage 1, 2 or 3 alone",
                    "--set zero_optimization.stage=1");
  if (const auto wire = resolver.string(sent); wire && *wire != type && config.ranks > 1)
    resolver.refuse(sent,
                    "ranks send what they hold, and " + (config.masters.empty()
                                                             ? std::string(path) + " is \"" + type + "\""
                                                             : type + "." + type + "_master_weights_and_grads is true"),
                    "--set communication_data_type=" + type);
}

void resolveFp8(Resolver &resolver, Config &config) {
  static constexpr std::string_view path = "deepstatic.fp8";
  config.fp8 = resolver.stringOrDefault(path);
  if (config.fp8 != "off" && !config.bf16)
    resolver.refuse(path, "what such products read and write is bfloat16, and bf16.enabled is false",
                    "--set bf16.enabled=true");
}

/// The scale of a loss that is a sum over labels, and the division by their count, are one by one right, but nobody has
/// followed both at once.
void resolveNormalization(Resolver &resolver, Config &config) {
  static constexpr std::string_view path = "deepstatic.loss_normalization";
  config.lossByTokens = resolver.stringOrDefault(path) == "tokens";
  if (config.lossByTokens && config.fp16)
    resolver.refuse(path, "with fp16.enabled it is not available yet; bf16 has it",
                    "--set fp16.enabled=false --set bf16.enabled=true");
}

/// A number of bytes, or a text such as "2GiB"; nothing where none is written or it is refused.
std::optional<int64_t> bytesAt(Resolver &resolver, std::string_view path) {
  std::optional<int64_t> bytes = resolver.integer(path);
  try {
    if (const auto text = resolver.string(path))
      bytes = parseBytes(*text, path);
  } catch (const Error &) {
    resolver.refuse(path, "write a number of bytes or a size such as \"2GiB\"");
    return std::nullopt;
  }
  if (bytes && *bytes <= 0) {
    resolver.refuse(path, "it must be more than 0 bytes");
    return std::nullopt;
  }
  return bytes;
}

void resolveCheckpoint(Resolver &resolver, Config &config) {
  static constexpr std::string_view snapshot = "deepstatic.checkpoint.snapshot",
                                    buffer = "deepstatic.checkpoint.buffer";
  const std::optional<int64_t> bytes = bytesAt(resolver, buffer);
  if (resolver.stringOrDefault(snapshot) == "buffered")
    config.checkpointBuffer = bytes.value_or(parseBytes(resolver.stringOrDefault(buffer), buffer));
  else if (resolver.find(buffer) != nullptr)
    resolver.refuse(buffer, R"(with "snapshot": "blocking" a step waits for the disk, and there is no buffer)");
}

void resolveMemory(Resolver &resolver, const ConfigOverrides &overrides, Config &config) {
  config.deviceMemory = bytesAt(resolver, "deepstatic.device_memory");
  if (overrides.deviceMemory)
    config.deviceMemory = overrides.deviceMemory;
  config.hostMemory = overrides.hostMemory;
}

Monitor readMonitor(const Resolver &resolver, const std::string &section) {
  if (!resolver.booleanOrDefault(section + ".enabled"))
    return {};
  return {true, resolver.stringOrDefault(section + ".output_path"), resolver.stringOrDefault(section + ".job_name")};
}

void resolveProfiling(Resolver &resolver, Profiling &profiling) {
  static constexpr std::string_view print = "steps_per_print", step = "flops_profiler.profile_step",
                                    file = "flops_profiler.output_file";
  profiling.wallClock = resolver.booleanOrDefault("wall_clock_breakdown");
  const std::optional<int64_t> steps = resolver.integer(print);
  if (!profiling.wallClock)
    resolver.subsume(print, "ds-run prints a line per tenth of the run; --metrics has every step");
  else if (steps && *steps < 1)
    resolver.refuse(print, "it is a number of steps, and must be at least 1");
  else
    profiling.stepsPerPrint = steps.value_or(0);
  profiling.collectives = resolver.booleanOrDefault("comms_logger.enabled");
  if (!resolver.booleanOrDefault("flops_profiler.enabled"))
    return;
  profiling.flopsStep = resolver.integerOrDefault(step);
  profiling.flopsFile = resolver.string(file).value_or("");
  if (const Node *written = resolver.find(file);
      written && written->kind != Node::Kind::String && written->kind != Node::Kind::Null)
    resolver.refuse(file, "it is the name of a file, or null for the terminal");
  if (profiling.flopsStep < 1)
    resolver.refuse(step, "it is the number of a step, and the first is 1");
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
    resolvePipeline(resolver, overrides, config);
    resolveTensor(resolver, config);
    resolveBatchSizes(resolver, config);
    checkMicrobatches(resolver, config);
    resolvePrecision(resolver, config);
    resolveFp8(resolver, config);
    resolveNormalization(resolver, config);
    resolveLoss(resolver, config);
    resolveOptimizer(resolver, config);
    resolveScheduler(resolver, config);
    resolveParameterGroups(resolver, config);
    resolveClipping(resolver, config);
    resolveZero(resolver, config);
    resolveMasters(resolver, config);
    resolveSums(resolver, config);
    resolveRecompute(resolver, config);
    resolveOffload(resolver, config);
    resolveMemory(resolver, overrides, config);
    resolveCheckpoint(resolver, config);
    config.tensorboard = readMonitor(resolver, "tensorboard");
    config.csvMonitor = readMonitor(resolver, "csv_monitor");
    resolveProfiling(resolver, config.profiling);
    config.tf32 = resolver.booleanOrDefault("deepstatic.tf32");
    resolver.finish(config);
  } catch (const ConfigError &) {
    throw;
  } catch (const Error &unreadable) {
    throw ConfigError(unreadable.what(), {}, {}, unreadable.tryLine);
  }
  return config;
}

double Fp16::firstScale() const { return isDynamic() ? std::ldexp(1.0, int(initialScalePower)) : lossScale; }

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
  case Optimizer::Type::Lamb:
    return "Lamb";
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
