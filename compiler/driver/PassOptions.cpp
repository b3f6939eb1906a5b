//===- PassOptions.cpp - what the passes are asked for --------------------===//
#include "compiler/driver/PassOptions.h"

#include "compiler/scheduling/PipelineSchedule.h"
#include "core/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <string>
#include <variant>

using namespace ds;
using namespace ds::driver;
using llvm::StringRef;

namespace {

/// As ds-insert-optimizer takes them: `name = value, ...`.
std::string attributeList(const std::vector<config::ScheduleParameter> &parameters) {
  std::string list;
  llvm::raw_string_ostream out(list);
  for (const config::ScheduleParameter &one : parameters) {
    out << (&one == parameters.data() ? "" : ", ") << one.name << " = ";
    if (const auto *number = std::get_if<double>(&one.value))
      out << llvm::format("%.17e", *number); // reads back as the same number
    else if (const auto *whole = std::get_if<int64_t>(&one.value))
      out << *whole;
    else
      out << '"' << std::get<std::string_view>(one.value) << '"';
  }
  return list;
}

/// As ds-insert-optimizer takes them: `{match = "REGEX", ...}, ...`.
std::string groupList(const std::vector<config::ParameterGroup> &groups) {
  std::string list;
  llvm::raw_string_ostream out(list);
  for (const config::ParameterGroup &group : groups) {
    out << (&group == groups.data() ? "{match = \"" : ", {match = \"");
    llvm::printEscapedString(group.match, out);
    out << llvm::format("\", lr_factor = %.17e", group.lrFactor);
    if (group.weightDecay)
      out << llvm::format(", weight_decay = %.17e", *group.weightDecay);
    out << "}";
  }
  return list;
}

InsertOptimizerOptions optimizerOptions(const config::Config &config) {
  InsertOptimizerOptions options;
  const config::Optimizer &optimizer = config.optimizer;
  options.optimizer = StringRef(config::name(optimizer.type)).lower();
  options.lr = optimizer.lr;
  options.beta1 = optimizer.beta1;
  options.beta2 = optimizer.beta2;
  options.epsilon = optimizer.epsilon;
  options.weightDecay = optimizer.weightDecay;
  options.adamWMode = optimizer.adamWMode;
  options.momentum = optimizer.momentum;
  options.nesterov = optimizer.nesterov;
  options.lrDecay = optimizer.lrDecay;
  options.maxCoeff = optimizer.maxCoeff;
  options.minCoeff = optimizer.minCoeff;
  options.biasCorrection = optimizer.biasCorrection;
  options.narrowMoments = config.narrowMoments;
  options.clip = config.gradientClipping.value_or(0);
  options.parameterGroups = groupList(config.parameterGroups);
  const config::Scheduler &scheduler = config.scheduler;
  if (scheduler.type == config::Scheduler::Type::None)
    return options;
  options.schedule = std::string(config::name(scheduler.type));
  options.scheduleParameters = attributeList(config::rateParameters(scheduler, optimizer));
  if (config::cyclesMomentum(config)) {
    options.momentumParameters = attributeList(config::momentumParameters(scheduler));
    options.beta2 = config::cycledBeta2;
  }
  return options;
}

ScaleLossOptions lossScaleOptions(const config::Fp16 &fp16) {
  return {.initial = fp16.firstScale(),
          .window = fp16.isDynamic() ? fp16.lossScaleWindow : 0,
          .hysteresis = fp16.hysteresis,
          .consecutive = fp16.consecutiveHysteresis,
          .least = fp16.minLossScale};
}

ZeroOptions zeroOptions(const config::Zero &zero) {
  return {.stage = zero.stage,
          .bucketElements = zero.bucketElements(),
          .persistenceThreshold = zero.paramPersistenceThreshold,
          .modelPersistenceThreshold = zero.modelPersistenceThreshold,
          .maxLive = zero.maxLiveParameters,
          .maxReuseDistance = zero.maxReuseDistance,
          .prefetch = zero.prefetchBucketSize,
          .overlap = zero.overlapComm,
          .reductionType = zero.reductionType};
}

/// Nothing for "auto", where `planWithinMemory` decides.
ChooseRecomputeOptions recomputeOptions(const config::Recompute &recompute) {
  return {.level = recompute.level,
          .full = recompute.mode == config::Recompute::Mode::Full,
          .checkpoints = recompute.checkpoints,
          .rules = {recompute.rules.begin(), recompute.rules.end()}};
}

bool isNone(const config::Recompute &recompute) {
  return recompute.mode == config::Recompute::Mode::Level && recompute.level == 0;
}

/// The passes that --without names, if a plan can be made without them.
const std::vector<std::string> &checkedWithout(const std::vector<std::string> &names) {
  for (const std::string &name : names)
    if (!llvm::is_contained(optionalPasses, name))
      throw Error("--without " + name + " is no pass that can be left out; those are " +
                  llvm::join(optionalPasses, ", "));
  return names;
}

/// The memory space of a `device` of DeepSpeed's.
std::string memorySpace(const std::string &device) {
  return device == "cpu" ? "host" : device == "nvme" ? "nvme" : "device";
}

/// Whether updates from files are made before the norm is known by which gradients are clipped. In float16 steps are
/// left out, and losses that are weighed by targets divide gradients by these, so the factor is not mostly 1. Delayed
/// updates wait for nothing anyway.
bool speculates(const config::Config &config) {
  return config.offloadOptimizer == "nvme" && !config.delayedUpdate && config.gradientClipping.value_or(0) > 0 &&
         !config.fp16 && !config.lossByTokens && config.pipeline.stages == 1;
}

} // namespace

int64_t ds::driver::roomOf(const config::Machine &machine) {
  return std::max<int64_t>(0, machine.deviceMemory - machine.reserve);
}

CompileOptions ds::driver::compileOptions(const CompileRequest &request, const config::Config &config,
                                          const config::Machine &machine) {
  CompileOptions options;
  options.device = machine.device == "cuda" ? kernels::Device::Cuda : kernels::Device::Cpu;
  if (const import::ImportOptions &model = request.model; model.loraRank != 0)
    options.adapters = {.rank = model.loraRank,
                        .targets = model.loraTargets,
                        .trainable = {model.trainable.begin(), model.trainable.end()}};
  options.optimizer = optimizerOptions(config);
  options.microbatches = config.accumulationSteps;
  options.dataParallel = config.ranks;
  options.tensorParallel = config.tensor.size;
  options.pipeline = {.ranks = config.pipeline.stages,
                      .chunks = config.pipeline.chunks,
                      .schedule = std::string(scheduling::name(config.pipeline.schedule)),
                      .partition = config.pipeline.partition,
                      .memory = roomOf(machine)};
  options.recompute = recomputeOptions(config.recompute);
  options.keepsOperands = options.device == kernels::Device::Cuda && isNone(config.recompute);
  options.zero = zeroOptions(config.zero);
  for (const config::OffloadRule &rule : config.offload)
    options.offload.activations.push_back(rule.modules + "=" + memorySpace(rule.device));
  options.offload.parameters = config.offloadParameters == "none" ? "" : memorySpace(config.offloadParameters);
  options.offload.optimizer = config.offloadOptimizer == "none" ? "" : memorySpace(config.offloadOptimizer);
  options.offload.optimizerStays = 1 - config.offloadRatio;
  options.offload.speculates = speculates(config);
  options.hostMemory = machine.hostMemory;
  options.tf32 = config.tf32;
  options.narrow = config.fp16 ? "f16" : config.bf16 ? "bf16" : "";
  options.sums = config.sums;
  options.masters = config.masters;
  options.fp8 = config.fp8 == "off" ? "" : config.fp8;
  if (config.fp16)
    options.lossScale = lossScaleOptions(*config.fp16);
  options.countsTargets = config.lossByTokens;
  options.delaysUpdates = config.delayedUpdate;
  options.threads = machine.threads;
  options.workspaceBytesPerThread = machine.workspaceBytesPerThread;
  options.alignment = machine.alignment;
  if (!machine.isa.empty())
    options.isa = machine.isa;
  options.fusesGelu = options.device == kernels::Device::Cuda && config::computeCapability(options.isa) >= 90;
  options.without = checkedWithout(request.without);
  return options;
}

std::vector<OffloadOptions> ds::driver::offloadChoices(const CompileOptions &options) {
  std::vector<OffloadOptions> choices{options.offload};
  const auto add = [&](auto &&change) {
    OffloadOptions next = choices.back();
    change(next);
    choices.push_back(next);
  };
  add([](OffloadOptions &next) { next.activations.push_back(".*=host"); });
  if (options.device == kernels::Device::Cpu && options.offload.optimizer.empty())
    add([](OffloadOptions &next) { next.optimizer = "host"; });
  if (options.offload.parameters.empty())
    add([](OffloadOptions &next) { next.parameters = "host"; });
  return choices;
}
