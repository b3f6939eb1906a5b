//===- ResolvedJson.cpp - what holds, for the plan ------------------------===//
#include "compiler/config/Config.h"
#include "core/Json.h"

#include <string>

// Keys stand in alphabetical order, so that two plans can be compared line by line.

namespace ds::config {
namespace {

Json optimizerJson(const Optimizer &o) {
  switch (o.type) {
  case Optimizer::Type::None:
    return {{"type", nullptr}};
  case Optimizer::Type::Sgd:
    return {
        {"params", {{"lr", o.lr}, {"momentum", o.momentum}, {"nesterov", o.nesterov}, {"weight_decay", o.weightDecay}}},
        {"type", "SGD"}};
  case Optimizer::Type::Adagrad:
    return {{"params", {{"eps", o.epsilon}, {"lr", o.lr}, {"lr_decay", o.lrDecay}, {"weight_decay", o.weightDecay}}},
            {"type", "Adagrad"}};
  case Optimizer::Type::AdamW:
    break;
  }
  return {{"params",
           {{"adam_w_mode", o.adamWMode},
            {"betas", {o.beta1, o.beta2}},
            {"eps", o.epsilon},
            {"lr", o.lr},
            {"weight_decay", o.weightDecay}}},
          {"type", o.adamWMode ? "AdamW" : "Adam"}};
}

Json schedulerJson(const Scheduler &s) {
  if (s.type == Scheduler::Type::None)
    return {{"type", nullptr}};
  const bool cosine = s.type == Scheduler::Type::WarmupCosineLR;
  Json params;
  if (cosine)
    params["cos_min_ratio"] = s.cosMinRatio;
  if (s.type != Scheduler::Type::WarmupLR)
    params["total_num_steps"] = s.totalNumSteps;
  if (cosine) {
    params["warmup_min_ratio"] = s.warmupMinRatio;
  } else {
    params["warmup_max_lr"] = s.warmupMaxLr;
    params["warmup_min_lr"] = s.warmupMinLr;
  }
  params["warmup_num_steps"] = s.warmupNumSteps;
  params["warmup_type"] = name(s.warmup);
  return {{"params", params}, {"type", name(s.type)}};
}

Json zeroJson(const Zero &z) {
  return {{"allgather_bucket_size", z.allgatherBucketSize},
          {"overlap_comm", z.overlapComm},
          {"reduce_bucket_size", z.reduceBucketSize},
          {"stage", z.stage},
          {"stage3_max_live_parameters", z.maxLiveParameters},
          {"stage3_max_reuse_distance", z.maxReuseDistance},
          {"stage3_model_persistence_threshold", z.modelPersistenceThreshold},
          {"stage3_param_persistence_threshold", z.paramPersistenceThreshold},
          {"stage3_prefetch_bucket_size", z.prefetchBucketSize}};
}

Json pipelineJson(const Pipeline &p) {
  return {{"chunks", p.chunks}, {"partition", p.partition}, {"schedule", name(p.schedule)}, {"stages", p.stages}};
}

Json recomputeJson(const Recompute &r) {
  switch (r.mode) {
  case Recompute::Mode::Auto:
    return "auto";
  case Recompute::Mode::Level:
    return r.level == 0 ? Json("none") : Json(r.level);
  case Recompute::Mode::Full:
    return "full";
  case Recompute::Mode::Rules:
    break;
  }
  Json rules; // whose order counts
  for (const Recompute::Rule &rule : r.rules)
    rules[rule.modules] = rule.again ? "recompute" : "save";
  return rules;
}

} // namespace

std::string resolvedJson(const Config &config) {
  const int64_t checkpoints = config.recompute.checkpoints;
  const Json resolved = {
      {"activation_checkpointing", {{"number_checkpoints", checkpoints > 0 ? Json(checkpoints) : Json(nullptr)}}},
      {"bf16", {{"enabled", config.bf16}}},
      {"deepstatic",
       {{"device_memory", config.deviceMemory ? Json(*config.deviceMemory) : Json(nullptr)},
        {"loss_normalization", "microbatch"},
        {"pipeline", pipelineJson(config.pipeline)},
        {"recompute", recomputeJson(config.recompute)},
        {"tensor_parallel", 1},
        {"tf32", config.tf32}}},
      {"fp16", {{"enabled", false}}},
      {"gradient_accumulation_steps", config.accumulationSteps},
      {"gradient_clipping", config.gradientClipping.value_or(0)},
      {"optimizer", optimizerJson(config.optimizer)},
      {"scheduler", schedulerJson(config.scheduler)},
      {"train_batch_size", config.trainBatchSize},
      {"train_micro_batch_size_per_gpu", config.microBatchSize},
      {"zero_optimization", zeroJson(config.zero)},
  };
  return resolved.dump();
}

} // namespace ds::config
