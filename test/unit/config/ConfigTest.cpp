//===- ConfigTest.cpp - what a configuration resolves to ------------------===//
#include "compiler/config/Config.h"

#include <gtest/gtest.h>

namespace ds::config {
namespace {

constexpr std::string_view adamW = R"("optimizer": {"type": "AdamW", "params": {"lr": 0.001}})";

Config resolve(const std::string &text, int64_t ranks = 1, std::vector<std::string> sets = {}) {
  ConfigOverrides overrides;
  overrides.ranks = ranks;
  overrides.sets = std::move(sets);
  return resolveConfig(text, overrides);
}

/// A configuration of these members and an optimizer.
Config resolveWith(const std::string &members, int64_t ranks = 1, std::vector<std::string> sets = {}) {
  return resolve("{" + members + ", " + std::string(adamW) + "}", ranks, std::move(sets));
}

const KeyAnswer &answerOf(const Config &config, std::string_view path) {
  for (const KeyAnswer &answer : config.answers)
    if (answer.path == path)
      return answer;
  ADD_FAILURE() << "no answer for " << path;
  static const KeyAnswer none;
  return none;
}

struct Batch {
  const char *written;
  int64_t ranks, train, micro, steps;
};

TEST(Config, TwoOfTheBatchSizesGiveTheThird) {
  static constexpr Batch cases[] = {
      {R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": 4)", 2, 32, 4, 4},
      {R"("train_batch_size": 32, "gradient_accumulation_steps": 8)", 2, 32, 2, 8},
      {R"("train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3)", 2, 24, 4, 3},
      {R"("train_batch_size": 32)", 2, 32, 16, 1},
      {R"("train_micro_batch_size_per_gpu": 4)", 2, 8, 4, 1},
      {R"("train_batch_size": 24, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3)", 2, 24, 4, 3},
      {R"("train_batch_size": 8.0)", 1, 8, 8, 1},
      {R"("train_batch_size": null, "train_micro_batch_size_per_gpu": 1)", 1, 1, 1, 1},
  };
  for (const Batch &one : cases) {
    const Config config = resolveWith(one.written, one.ranks);
    EXPECT_EQ(config.trainBatchSize, one.train) << one.written;
    EXPECT_EQ(config.microBatchSize, one.micro) << one.written;
    EXPECT_EQ(config.accumulationSteps, one.steps) << one.written;
    EXPECT_EQ(config.ranks, one.ranks);
  }
}

TEST(Config, DefaultsAreDeepSpeeds) {
  const Config config = resolve(R"({"train_batch_size": 1, "optimizer": {"type": "AdamW"}})");
  EXPECT_EQ(config.optimizer.type, Optimizer::Type::AdamW);
  EXPECT_EQ(config.optimizer.lr, 1e-3);
  EXPECT_EQ(config.optimizer.beta1, 0.9);
  EXPECT_EQ(config.optimizer.beta2, 0.999);
  EXPECT_EQ(config.optimizer.epsilon, 1e-8);
  EXPECT_EQ(config.optimizer.weightDecay, 0);
  EXPECT_TRUE(config.optimizer.adamWMode);
  EXPECT_EQ(config.scheduler.type, Scheduler::Type::None);
  EXPECT_EQ(config.gradientClipping, 1.0);
  EXPECT_EQ(config.deviceMemory, std::nullopt);
}

TEST(Config, AdamIsAdamWUnlessToldOtherwise) {
  EXPECT_TRUE(resolve(R"({train_batch_size: 1, optimizer: {type: "Adam"}})").optimizer.adamWMode);
  EXPECT_TRUE(resolve(R"({train_batch_size: 1, optimizer: {type: "adamw"}})").optimizer.adamWMode);
  const Config plain = resolve(R"({train_batch_size: 1, optimizer: {type: "adam", params: {adam_w_mode: false}}})");
  EXPECT_FALSE(plain.optimizer.adamWMode);
  EXPECT_NE(resolvedJson(plain).find(R"("type":"Adam")"), std::string::npos);
}

TEST(Config, ReadsEveryParameterOfAdam) {
  const Config config = resolve(R"({train_batch_size: 1, optimizer: {type: "AdamW", params: {
      lr: 3e-4, betas: [0.8, 0.95], eps: 1e-6, weight_decay: 0.1, amsgrad: false, torch_adam: true}}})");
  EXPECT_EQ(config.optimizer.lr, 3e-4);
  EXPECT_EQ(config.optimizer.beta1, 0.8);
  EXPECT_EQ(config.optimizer.beta2, 0.95);
  EXPECT_EQ(config.optimizer.epsilon, 1e-6);
  EXPECT_EQ(config.optimizer.weightDecay, 0.1);
  EXPECT_EQ(answerOf(config, "optimizer.params.torch_adam").status, "subsumed");
  EXPECT_EQ(answerOf(config, "optimizer.params.amsgrad").status, "honoured");
}

TEST(Config, ReadsEveryParameterOfSgd) {
  const Config config = resolve(R"({train_batch_size: 1, optimizer: {type: "SGD", params: {
      lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 1e-4, dampening: 0}}})");
  EXPECT_EQ(config.optimizer.type, Optimizer::Type::Sgd);
  EXPECT_EQ(config.optimizer.lr, 0.1);
  EXPECT_EQ(config.optimizer.momentum, 0.9);
  EXPECT_TRUE(config.optimizer.nesterov);
  EXPECT_EQ(config.optimizer.weightDecay, 1e-4);
}

TEST(Config, ReadsEveryParameterOfAdagrad) {
  const Config config = resolve(R"({train_batch_size: 1, optimizer: {type: "adagrad", params: {
      lr: 0.1, eps: 1e-8, lr_decay: 0.5, weight_decay: 1e-4}}})");
  EXPECT_EQ(config.optimizer.type, Optimizer::Type::Adagrad);
  EXPECT_EQ(config.optimizer.lr, 0.1);
  EXPECT_EQ(config.optimizer.epsilon, 1e-8);
  EXPECT_EQ(config.optimizer.lrDecay, 0.5);
  EXPECT_EQ(config.optimizer.weightDecay, 1e-4);
  const Optimizer defaults = resolve(R"({train_batch_size: 1, optimizer: {type: "Adagrad"}})").optimizer;
  EXPECT_EQ(defaults.lr, 0.01);
  EXPECT_EQ(defaults.epsilon, 1e-10);
}

TEST(Config, ReadsEveryParameterOfLamb) {
  const Config config = resolve(R"({train_batch_size: 1, optimizer: {type: "lamb", params: {lr: 0.1, betas: [0.8, 0.95],
      eps: 1e-6, weight_decay: 1e-2, max_coeff: 0.5, min_coeff: 0.125, bias_correction: false}}})");
  EXPECT_EQ(config.optimizer.type, Optimizer::Type::Lamb);
  EXPECT_EQ(config.optimizer.lr, 0.1);
  EXPECT_EQ(config.optimizer.beta1, 0.8);
  EXPECT_EQ(config.optimizer.beta2, 0.95);
  EXPECT_EQ(config.optimizer.epsilon, 1e-6);
  EXPECT_EQ(config.optimizer.weightDecay, 1e-2);
  EXPECT_EQ(config.optimizer.maxCoeff, 0.5);
  EXPECT_EQ(config.optimizer.minCoeff, 0.125);
  EXPECT_FALSE(config.optimizer.biasCorrection);
  const Optimizer defaults = resolve(R"({train_batch_size: 1, optimizer: {type: "Lamb"}})").optimizer;
  EXPECT_EQ(defaults.lr, 1e-3);
  EXPECT_EQ(defaults.beta2, 0.999);
  EXPECT_EQ(defaults.epsilon, 1e-8);
  EXPECT_EQ(defaults.maxCoeff, 10);
  EXPECT_EQ(defaults.minCoeff, 0.01);
  EXPECT_TRUE(defaults.biasCorrection);
}

TEST(Config, WarmupLrEndsAtTheOptimizersRate) {
  const Config config = resolve(R"({train_batch_size: 1, optimizer: {type: "SGD", params: {lr: 0.25}},
      scheduler: {type: "WarmupLR", params: {warmup_min_lr: 0.125, warmup_num_steps: 10, warmup_type: "linear"}}})");
  EXPECT_EQ(config.scheduler.type, Scheduler::Type::WarmupLR);
  EXPECT_EQ(config.scheduler.warmup, Scheduler::Warmup::Linear);
  EXPECT_EQ(config.scheduler.warmupMinLr, 0.125);
  EXPECT_EQ(config.scheduler.warmupMaxLr, 0.25);
  EXPECT_EQ(config.scheduler.warmupNumSteps, 10);
}

TEST(Config, WarmupDecayAndCosineHaveTheirOwnDefaults) {
  const Config decay = resolveWith(
      R"("train_batch_size": 1, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 50}})");
  EXPECT_EQ(decay.scheduler.type, Scheduler::Type::WarmupDecayLR);
  EXPECT_EQ(decay.scheduler.warmup, Scheduler::Warmup::Log);
  EXPECT_EQ(decay.scheduler.warmupMaxLr, 1e-3);
  EXPECT_EQ(decay.scheduler.warmupNumSteps, 1000);
  EXPECT_EQ(decay.scheduler.totalNumSteps, 50);
  const Config cosine = resolveWith(R"("train_batch_size": 1, "scheduler": {"type": "WarmupCosineLR", "params":
      {"total_num_steps": 50, "warmup_min_ratio": 0.01}})");
  EXPECT_EQ(cosine.scheduler.type, Scheduler::Type::WarmupCosineLR);
  EXPECT_EQ(cosine.scheduler.warmupMinRatio, 0.01);
  EXPECT_EQ(cosine.scheduler.cosMinRatio, 1e-4);
}

TEST(Config, ZeroTurnsClippingOff) {
  EXPECT_EQ(resolveWith(R"("train_batch_size": 1, "gradient_clipping": 0)").gradientClipping, std::nullopt);
  EXPECT_EQ(resolveWith(R"("train_batch_size": 1, "gradient_clipping": 0.5)").gradientClipping, 0.5);
}

TEST(Config, Tf32IsOffUnlessWritten) {
  EXPECT_FALSE(resolveWith(R"("train_batch_size": 1)").tf32);
  const Config config = resolveWith(R"("train_batch_size": 1, "deepstatic": {"tf32": true})");
  EXPECT_TRUE(config.tf32);
  EXPECT_NE(resolvedJson(config).find(R"("tf32":true)"), std::string::npos);
}

TEST(Config, SetOverridesTheFileAndMakesWhatIsMissing) {
  const Config config = resolveWith(R"("train_batch_size": 1)", 1,
                                    {"train_batch_size=6", "optimizer.params.lr=0.5", "optimizer.params.lr=0.25",
                                     "gradient_accumulation_steps=3", "scheduler.type=WarmupLR"});
  EXPECT_EQ(config.trainBatchSize, 6);
  EXPECT_EQ(config.microBatchSize, 2);
  EXPECT_EQ(config.optimizer.lr, 0.25); // the last one wins
  EXPECT_EQ(config.scheduler.warmupMaxLr, 0.25);
  EXPECT_EQ(answerOf(config, "train_batch_size").valueJson, "6");
}

TEST(Config, Bfloat16) {
  EXPECT_FALSE(resolveWith(R"("train_batch_size": 1)").bf16);
  const Config config = resolveWith(R"("train_batch_size": 1, "data_types": {"grad_accum_dtype": "fp32"},
      "bfloat16": {"enabled": true, "check_grad_overflow": false, "immediate_grad_update": true,
                   "bf16_master_weights_and_grads": false})");
  EXPECT_TRUE(config.bf16);
  EXPECT_EQ(answerOf(config, "bfloat16.enabled").status, "honoured");
  EXPECT_EQ(answerOf(config, "bfloat16.check_grad_overflow").status, "subsumed");
  EXPECT_EQ(answerOf(config, "bfloat16.bf16_master_weights_and_grads").status, "honoured");
  EXPECT_EQ(config.masters, "");
  EXPECT_NE(resolvedJson(config).find(R"("bf16":{"enabled":true})"), std::string::npos);
}

TEST(Config, SumsOfGradientsInSixteenBits) {
  EXPECT_EQ(resolveWith(R"("train_batch_size": 1, "data_types": {"grad_accum_dtype": null})").sums, "");
  const Config config = resolveWith(R"("train_batch_size": 2, "data_types": {"grad_accum_dtype": "bf16"},
      "zero_optimization": {"stage": 1})",
                                    2); // a float32 model
  EXPECT_EQ(config.sums, "bf16");
  EXPECT_EQ(answerOf(config, "data_types.grad_accum_dtype").status, "honoured");
  const std::string resolved = resolvedJson(config);
  EXPECT_NE(resolved.find(R"("data_types":{"grad_accum_dtype":"bf16"})"), std::string::npos);
  ConfigOverrides two;
  two.ranks = 2;
  EXPECT_EQ(resolveConfig(resolved, two).sums, "bf16") << "what is resolved is a configuration itself";
}

TEST(Config, MastersOfSixteenBits) {
  const std::string members =
      R"("train_batch_size": 1, "zero_optimization": {"stage": 1},
      "bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true})";
  for (const Config &config : {resolveWith(members), resolveConfig(resolvedJson(resolveWith(members)), {})}) {
    EXPECT_EQ(config.masters, "bf16");
    EXPECT_TRUE(config.narrowMoments);
    EXPECT_EQ(config.sums, "bf16");
  }
  EXPECT_EQ(resolveWith(R"("train_batch_size": 1, "fp16": {"enabled": false, "fp16_master_weights_and_grads": true})")
                .masters,
            "");
}

TEST(Config, WhatAsksForNothingIsAccepted) {
  const Config config = resolveWith(R"("train_batch_size": 1, "zero_optimization": {"stage": 0, "overlap_comm": true,
      "reduce_bucket_size": 2e8, "offload_optimizer": {"device": "none", "buffer_count": 5}},
      "fp16": {"enabled": false, "loss_scale": 128}, "bfloat16": {"enabled": false}, "steps_per_print": 100,
      "wall_clock_breakdown": false, "aio": {"queue_depth": 32}, "tensorboard": {"enabled": false, "job_name": "x"},
      "data_types": {"grad_accum_dtype": "fp32"}, "comms_logger": {}, "zero_allow_untested_optimizer": true,
      "deepstatic": {"pipeline": {"stages": 1, "schedule": "zb-h1"}, "recompute": "none", "tensor_parallel": {"size": 1}})");
  EXPECT_EQ(answerOf(config, "zero_optimization.stage").status, "honoured");
  EXPECT_EQ(answerOf(config, "zero_optimization.overlap_comm"),
            (KeyAnswer{"zero_optimization.overlap_comm", "true", "subsumed", "one rank has nobody to share with"}));
  EXPECT_EQ(answerOf(config, "zero_optimization.offload_optimizer.buffer_count").note,
            "has no effect while zero_optimization.offload_optimizer.device is \"none\"");
  EXPECT_EQ(answerOf(config, "fp16.loss_scale").note, "has no effect while fp16.enabled is false");
  EXPECT_EQ(answerOf(config, "bfloat16.enabled").status, "honoured"); // in the user's spelling
  EXPECT_EQ(answerOf(config, "steps_per_print").status, "subsumed");
  EXPECT_EQ(answerOf(config, "comms_logger").note, "nothing is set in it");
  EXPECT_EQ(answerOf(config, "deepstatic.pipeline.schedule").status, "subsumed");
}

TEST(Config, ZeroOptimizationIsHonoured) {
  const std::string_view members =
      R"("train_batch_size": 8, "zero_optimization": {"stage": 3, "reduce_bucket_size": 2e8,
      "sub_group_size": 1e8, "contiguous_gradients": false, "round_robin_gradients": true, "reduce_scatter": false,
      "ignore_unused_parameters": false, "zero_hpz_partition_size": 2, "prefetch_bucket_size": 1000,
      "stage3_max_live_parameters": 0, "stage3_max_reuse_distance": 7, "stage3_param_persistence_threshold": 5})";
  const Config config = resolveWith(std::string(members), 8);
  EXPECT_EQ(config.zero.stage, 3);
  EXPECT_EQ(config.zero.reduceBucketSize, 200'000'000);
  EXPECT_EQ(config.zero.allgatherBucketSize, 500'000'000);
  EXPECT_EQ(config.zero.prefetchBucketSize, 1000);
  EXPECT_EQ(config.zero.bucketElements(), 1000); // the smallest limit
  EXPECT_EQ(resolveWith(std::string(members), 8, {"zero_optimization.stage=2"}).zero.bucketElements(), 200'000'000);
  EXPECT_EQ(config.zero.maxLiveParameters, 0);
  EXPECT_EQ(config.zero.maxReuseDistance, 7);
  EXPECT_EQ(config.zero.paramPersistenceThreshold, 5);
  EXPECT_TRUE(config.zero.overlapComm); // null is true for stage 3 alone
  EXPECT_EQ(answerOf(config, "zero_optimization.stage").status, "honoured");
  EXPECT_EQ(answerOf(config, "zero_optimization.stage3_max_reuse_distance").status, "honoured");
  for (const char *key : {"sub_group_size", "contiguous_gradients", "round_robin_gradients", "reduce_scatter",
                          "ignore_unused_parameters", "zero_hpz_partition_size"}) {
    const KeyAnswer answer = answerOf(config, std::string("zero_optimization.") + key);
    EXPECT_EQ(answer.status, "subsumed") << key;
    EXPECT_NE(answer.note, "") << key;
  }
  EXPECT_FALSE(resolveWith(R"("train_batch_size": 8, "zero_optimization": {"stage": 2})", 8).zero.overlapComm);
}

TEST(Config, KeysOfStage3HaveNoEffectBelow) {
  const Config config =
      resolveWith(R"("train_batch_size": 8, "zero_optimization": {"stage": 1, "stage3_max_live_parameters": 5})", 8);
  EXPECT_EQ(
      answerOf(config, "zero_optimization.stage3_max_live_parameters"),
      (KeyAnswer{"zero_optimization.stage3_max_live_parameters", "5", "subsumed", "has no effect below stage 3"}));
}

TEST(Config, AnswersKeepTheOrderOfTheFile) {
  const Config config = resolve(R"({zero_optimization: {stage: 0}, train_batch_size: 1, optimizer: {type: "SGD"}})");
  ASSERT_EQ(config.answers.size(), 3u);
  EXPECT_EQ(config.answers[0].path, "zero_optimization.stage");
  EXPECT_EQ(config.answers[1].path, "train_batch_size");
  EXPECT_EQ(config.answers[2].path, "optimizer.type");
}

TEST(Config, DeviceMemoryComesFromTheFlagThenTheFile) {
  const std::string text = "{train_batch_size: 1, deepstatic: {device_memory: \"2GiB\"}, optimizer: {type: \"SGD\"}}";
  EXPECT_EQ(resolve(text).deviceMemory, int64_t(2) << 30);
  ConfigOverrides overrides;
  overrides.deviceMemory = 4096;
  overrides.hostMemory = 8192;
  const Config config = resolveConfig(text, overrides);
  EXPECT_EQ(config.deviceMemory, 4096);
  EXPECT_EQ(config.hostMemory, 8192);
}

TEST(Config, TheResolvedConfigurationResolvesToItself) {
  for (const char *text : {R"({"train_batch_size": 8, "gradient_accumulation_steps": 2, "gradient_clipping": 0.1,
           "optimizer": {"type": "Adam", "params": {"adam_w_mode": false, "eps": 1e-7}},
           "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 9, "cos_min_ratio": 0.25}}})",
                           R"({"train_micro_batch_size_per_gpu": 3, "gradient_clipping": 0,
           "deepstatic": {"device_memory": 12345, "loss_normalization": "tokens"},
           "optimizer": {"type": "SGD", "params": {"momentum": 0.9}}, "scheduler": {"type": "WarmupLR"}})"}) {
    const std::string once = resolvedJson(resolve(text));
    EXPECT_EQ(resolvedJson(resolve(once)), once);
    EXPECT_EQ(resolvedJson(resolve(text)), once);
  }
}

TEST(Config, ABlockingCheckpointHasNoBuffer) {
  const auto buffer = [](const std::string &checkpoint) {
    return resolve(R"({train_batch_size: 2, optimizer: {type: "AdamW"}, deepstatic: {checkpoint: {)" + checkpoint +
                   "}}}")
        .checkpointBuffer;
  };
  EXPECT_EQ(buffer(""), 268435456);
  EXPECT_EQ(buffer(R"(buffer: "1MiB")"), 1048576);
  EXPECT_EQ(buffer("buffer: 77"), 77);
  EXPECT_EQ(buffer(R"(snapshot: "blocking")"), 0);
}

TEST(Config, Float16) {
  const Config config = resolveWith(R"("train_batch_size": 1, "fp16": {"enabled": true, "auto_cast": true})");
  ASSERT_TRUE(config.fp16 && config.fp16->isDynamic());
  EXPECT_EQ(config.fp16->firstScale(), 65536);
  EXPECT_EQ(answerOf(config, "fp16.auto_cast").status, "subsumed");
  EXPECT_NE(resolvedJson(config).find(R"("fp16":{"consecutive_hysteresis":false,"enabled":true,"hysteresis":2,)"
                                      R"("initial_scale_power":16,"loss_scale":0.0,"loss_scale_window":1000,)"
                                      R"("min_loss_scale":1})"),
            std::string::npos);
  const Config fixed = resolveWith(R"("train_batch_size": 1, "fp16": {"enabled": true, "loss_scale": 128})");
  EXPECT_EQ(fixed.fp16->firstScale(), 128);
  EXPECT_EQ(resolvedJson(resolve(resolvedJson(fixed))), resolvedJson(fixed));
}

TEST(Config, TheResolvedConfigurationHasEveryDefault) {
  EXPECT_EQ(
      resolvedJson(resolve(R"({train_batch_size: 2, optimizer: {type: "AdamW"}})")),
      R"({"activation_checkpointing":{"cpu_checkpointing":false,"number_checkpoints":null},"bf16":{"enabled":false},"communication_data_type":"fp32",)"
      R"("deepstatic":{"checkpoint":{"buffer":268435456,"snapshot":"buffered"},)"
      R"("delayed_update":false,"device_memory":null,"fp8":"off","loss_normalization":"microbatch",)"
      R"("pipeline":{"chunks":1,"partition":"best","schedule":"1f1b","stages":1},"recompute":"auto",)"
      R"("tensor_parallel":{"size":1},"tf32":false},"fp16":{"enabled":false},)"
      R"("gradient_accumulation_steps":1,"gradient_clipping":1.0,"optimizer":{"params":{"adam_w_mode":true,)"
      R"("betas":[0.9,0.999],"eps":1e-08,"lr":0.001,"weight_decay":0.0},"type":"AdamW"},)"
      R"("scheduler":{"type":null},"train_batch_size":2,"train_micro_batch_size_per_gpu":2,)"
      R"("zero_optimization":{"allgather_bucket_size":500000000,"offload_optimizer":{"device":"none"},"offload_param":{"device":"none"},"overlap_comm":false,)"
      R"("reduce_bucket_size":500000000,"stage":0,"stage3_max_live_parameters":1000000000,)"
      R"("stage3_max_reuse_distance":1000000000,"stage3_model_persistence_threshold":9223372036854775807,)"
      R"("stage3_param_persistence_threshold":100000,"stage3_prefetch_bucket_size":50000000}})");
}

} // namespace
} // namespace ds::config
