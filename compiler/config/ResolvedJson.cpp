//===- ResolvedJson.cpp - what holds, for the plan ------------------------===//
#include "compiler/config/Config.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

namespace ds::config {
namespace {

using nlohmann::json; // keeps keys sorted

json optimizerJson(const Optimizer &o) {
  if (o.type == Optimizer::Type::None)
    return {{"type", nullptr}};
  json params = {{"lr", o.lr}, {"weight_decay", o.weightDecay}};
  if (o.type == Optimizer::Type::Sgd) {
    params["momentum"] = o.momentum;
    params["nesterov"] = o.nesterov;
    return {{"type", "SGD"}, {"params", params}};
  }
  if (o.type == Optimizer::Type::Adagrad) {
    params["eps"] = o.epsilon;
    params["lr_decay"] = o.lrDecay;
    return {{"type", "Adagrad"}, {"params", params}};
  }
  params["betas"] = {o.beta1, o.beta2};
  if (o.type == Optimizer::Type::Lion)
    return {{"type", "Lion"}, {"params", params}};
  params["eps"] = o.epsilon;
  if (o.type == Optimizer::Type::Lamb) {
    params["max_coeff"] = o.maxCoeff;
    params["min_coeff"] = o.minCoeff;
    params["bias_correction"] = o.biasCorrection;
    return {{"type", "Lamb"}, {"params", params}};
  }
  params["adam_w_mode"] = o.adamWMode;
  return {{"type", o.adamWMode ? "AdamW" : "Adam"}, {"params", params}};
}

json schedulerJson(const Config &config) {
  const Scheduler &s = config.scheduler;
  if (s.type == Scheduler::Type::None)
    return {{"type", nullptr}};
  json params = json::object();
  std::vector<ScheduleParameter> written = rateParameters(s, config.optimizer);
  if (s.type == Scheduler::Type::OneCycle) {
    params["cycle_momentum"] = s.oneCycle.cycleMomentum;
    std::ranges::copy(momentumParameters(s), std::back_inserter(written));
  }
  for (const auto &[name, value] : written)
    if (name == "lr_range_test_staircase")
      params[name] = s.rangeTest.staircase;
    else if (name != "lr") // the optimizer's, which stands there
      std::visit([&](const auto &one) { params[name] = one; }, value);
  return {{"type", name(s.type)}, {"params", params}};
}

json lossJson(const AttachedLoss &loss) {
  if (!loss.file.empty())
    return {{"file", loss.file}, {"sha256", loss.sha256}};
  json written = {{"kind", name(loss.kind)}};
  if (choosesClass(loss.kind))
    written.update({{"label_smoothing", loss.labelSmoothing}, {"ignore_index", loss.ignoreIndex}});
  if (!loss.classWeights.empty())
    written["class_weights"] = loss.classWeights;
  if (!loss.posWeight.empty())
    written["pos_weight"] = loss.posWeight;
  if (!loss.logits.empty())
    written["logits"] = loss.logits;
  return written;
}

json groupsJson(const std::vector<ParameterGroup> &groups) {
  json list = json::array();
  for (const ParameterGroup &group : groups) {
    json one = {{"match", group.match}, {"lr_factor", group.lrFactor}};
    if (group.weightDecay)
      one["weight_decay"] = *group.weightDecay;
    list.push_back(one);
  }
  return list;
}

json offloadJson(const Config &config, const std::string &device) {
  json result = {{"device", device}};
  if (device == "nvme")
    result["nvme_path"] = config.nvme->folder;
  return result;
}

json zeroJson(const Config &config) {
  const Zero &z = config.zero;
  json optimizer = offloadJson(config, config.offloadOptimizer);
  if (config.offloadOptimizer != "none")
    optimizer["ratio"] = config.offloadRatio;
  return {{"stage", z.stage},
          {"offload_optimizer", optimizer},
          {"offload_param", offloadJson(config, config.offloadParameters)},
          {"reduce_bucket_size", z.reduceBucketSize},
          {"allgather_bucket_size", z.allgatherBucketSize},
          {"overlap_comm", z.overlapComm},
          {"stage3_prefetch_bucket_size", z.prefetchBucketSize},
          {"stage3_max_live_parameters", z.maxLiveParameters},
          {"stage3_max_reuse_distance", z.maxReuseDistance},
          {"stage3_param_persistence_threshold", z.paramPersistenceThreshold},
          {"stage3_model_persistence_threshold", z.modelPersistenceThreshold}};
}

/// A configuration's name of a type that passes call "bf16", "f16" or "".
const char *typeName(const std::string &type) { return type.empty() ? "fp32" : type == "f16" ? "fp16" : "bf16"; }

json fp16Json(const std::optional<Fp16> &fp16) {
  if (!fp16)
    return {{"enabled", false}};
  return {{"enabled", true},
          {"loss_scale", fp16->lossScale},
          {"initial_scale_power", fp16->initialScalePower},
          {"loss_scale_window", fp16->lossScaleWindow},
          {"hysteresis", fp16->hysteresis},
          {"consecutive_hysteresis", fp16->consecutiveHysteresis},
          {"min_loss_scale", int64_t(fp16->minLossScale)}};
}

json pipelineJson(const Pipeline &p) {
  return {{"stages", p.stages}, {"chunks", p.chunks}, {"schedule", name(p.schedule)}, {"partition", p.partition}};
}

nlohmann::ordered_json recomputeJson(const Recompute &r) {
  switch (r.mode) {
  case Recompute::Mode::Auto:
    return "auto";
  case Recompute::Mode::Level:
    return r.level == 0 ? nlohmann::ordered_json("none") : nlohmann::ordered_json(r.level);
  case Recompute::Mode::Full:
    return "full";
  case Recompute::Mode::Rules:
    break;
  }
  nlohmann::ordered_json rules; // whose order counts
  for (const Recompute::Rule &rule : r.rules)
    rules[rule.modules] = rule.again ? "recompute" : rule.away ? "offload" : "save";
  return rules;
}

/// What is off is left out, as sections of files are: a plan without it is as it was.
void addProfiling(const Profiling &profiling, json &resolved) {
  if (profiling.wallClock)
    resolved["wall_clock_breakdown"] = true;
  if (profiling.stepsPerPrint > 0)
    resolved["steps_per_print"] = profiling.stepsPerPrint;
  if (profiling.collectives)
    resolved["comms_logger"] = {{"enabled", true}};
  if (profiling.flopsStep == 0)
    return;
  json &section = resolved["flops_profiler"] = {{"enabled", true}, {"profile_step", profiling.flopsStep}};
  if (!profiling.flopsFile.empty())
    section["output_file"] = profiling.flopsFile;
}

} // namespace

std::string resolvedJson(const Config &config) {
  json resolved = {
      {"train_batch_size", config.trainBatchSize},
      {"train_micro_batch_size_per_gpu", config.microBatchSize},
      {"gradient_accumulation_steps", config.accumulationSteps},
      {"gradient_clipping", config.gradientClipping.value_or(0)},
      {"optimizer", optimizerJson(config.optimizer)},
      {"scheduler", schedulerJson(config)},
      {"communication_data_type",
       typeName(config.zero.reductionType.empty() ? config.sums : config.zero.reductionType)},
      {"zero_optimization", zeroJson(config)},
      {"activation_checkpointing",
       {{"cpu_checkpointing", config.cpuCheckpointing},
        {"number_checkpoints", config.recompute.checkpoints > 0 ? json(config.recompute.checkpoints) : json(nullptr)}}},
      {"fp16", fp16Json(config.fp16)},
      {"bf16", {{"enabled", config.bf16}}},
      {"deepstatic",
       {{"pipeline", pipelineJson(config.pipeline)},
        {"recompute", nullptr},
        {"delayed_update", config.delayedUpdate},
        {"tensor_parallel", {{"size", config.tensor.size}}},
        {"tf32", config.tf32},
        {"fp8", config.fp8},
        {"loss_normalization", config.lossByTokens ? "tokens" : "microbatch"},
        {"checkpoint", config.checkpointBuffer > 0 ? json{{"snapshot", "buffered"}, {"buffer", config.checkpointBuffer}}
                                                   : json{{"snapshot", "blocking"}}},
        {"device_memory", config.deviceMemory ? json(*config.deviceMemory) : json(nullptr)}}},
  };
  if (!config.masters.empty()) {
    const std::string type = typeName(config.masters);
    resolved[type][type + "_master_weights_and_grads"] = true;
  }
  if (config.narrowMoments)
    resolved["bf16"]["bf16_optimizer_states"] = true;
  if (!config.sums.empty())
    resolved["data_types"] = {{"grad_accum_dtype", typeName(config.sums)}};
  if (config.loss)
    resolved["deepstatic"]["loss"] = lossJson(*config.loss);
  if (!config.parameterGroups.empty())
    resolved["deepstatic"]["parameter_groups"] = groupsJson(config.parameterGroups);
  for (const auto &[section, monitor] :
       {std::pair("tensorboard", &config.tensorboard), {"csv_monitor", &config.csvMonitor}})
    if (monitor->enabled)
      resolved[section] = {{"enabled", true}, {"output_path", monitor->outputPath}, {"job_name", monitor->jobName}};
  addProfiling(config.profiling, resolved);
  nlohmann::ordered_json sorted(resolved);
  if (config.offloadAuto)
    sorted["deepstatic"]["offload"] = "auto";
  for (const OffloadRule &rule : config.offloadAuto ? std::vector<OffloadRule>() : config.offload)
    sorted["deepstatic"]["offload"][rule.modules] = rule.device;
  if (config.nvme && config.offloadOptimizer != "nvme" && config.offloadParameters != "nvme")
    sorted["deepstatic"]["nvme_path"] = config.nvme->folder;
  sorted["deepstatic"]["recompute"] = recomputeJson(config.recompute);
  return sorted.dump();
}

} // namespace ds::config
