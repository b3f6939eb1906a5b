//===- ConfigFileTest.cpp - the second reading of a configuration ---------===//
//
// Two readings that share no rule must agree: this one and compiler/config's.
//
//===----------------------------------------------------------------------===//
#include "compiler/sources/ConfigFile.h"

#include "compiler/config/Config.h"

#include <gtest/gtest.h>

#include <map>

namespace ds::sources {
namespace {

struct Case {
  const char *text;
  std::vector<std::string> overrides = {};
};

const Case cases[] = {
    {R"({"train_batch_size": 8, "optimizer": {"type": "AdamW"}})"},
    {R"({"train_batch_size": 16, "gradient_accumulation_steps": 2, "optimizer": {"type": "adamw", "params": {"lr": 1e-5,
         "betas": [0.8, 0.95], "eps": 1e-6, "weight_decay": 0.1}}, "gradient_clipping": 0})"},
    {R"({"train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 5, "optimizer": {"type": "Adam",
         "params": {"adam_w_mode": false}}, "gradient_clipping": 0.5, "bf16": {"enabled": true}})"},
    {R"(# HJSON
        train_batch_size: 8
        optimizer: {type: "SGD", params: {momentum: 0.9, nesterov: true, lr: 0.1}})"},
    {R"({"train_batch_size": 8, "optimizer": {"type": "Adagrad"}})"},
    {R"({"train_batch_size": 8, "optimizer": {"type": "Lamb"}})"},
    {R"({"train_batch_size": 8, "optimizer": {"type": "lamb", "params": {"betas": [0.8, 0.95], "eps": 1e-6,
         "weight_decay": 0.1, "max_coeff": 0.5, "min_coeff": 0.25, "bias_correction": false}}})"},
    {R"({"train_batch_size": 8, "optimizer": {"type": "AdamW"}, "fp16": {"enabled": true}})"},
    {R"({"train_batch_size": 8, "optimizer": {"type": "AdamW"}, "fp16": {"enabled": true, "loss_scale": 128,
         "initial_scale_power": 4, "loss_scale_window": 7, "hysteresis": 3, "consecutive_hysteresis": true,
         "min_loss_scale": 2}})"},
    {R"({"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.01}}})",
     {"optimizer.params.lr=0.5", "gradient_clipping=2", "train_batch_size=32"}},
    {R"({"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.25}},
         "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 7}}})"},
    {R"({"train_batch_size": 8, "optimizer": {"type": "AdamW"},
         "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 90, "warmup_type": "linear"}}})"},
    {R"({"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.25}},
         "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 90, "warmup_num_steps": 0}}})"},
    // What says "auto", in an order in which nothing stands before what it rests on.
    {R"({"train_batch_size": "auto", "gradient_accumulation_steps": "auto", "train_micro_batch_size_per_gpu": "auto",
         "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": "auto", "warmup_min_lr": "auto",
         "warmup_num_steps": "auto"}}, "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto",
         "eps": "auto", "weight_decay": "auto"}}, "gradient_clipping": "auto", "fp16": {"enabled": "auto"},
         "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
         "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}})",
     {"train_micro_batch_size_per_gpu=3"}},
    {R"({"train_batch_size": 24, "gradient_accumulation_steps": "auto", "train_micro_batch_size_per_gpu": 3,
         "optimizer": {"type": "Adagrad", "params": {"lr": "auto", "eps": "auto"}},
         "deepstatic": {"loss_normalization": "tokens"}, "zero_optimization": {"stage": "auto", "reduce_bucket_size": "auto"}})"},
    {R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": "auto", "optimizer": {"type": "AdamW"},
         "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 9, "warmup_max_lr": "auto"}},
         "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto", "reduce_bucket_size": 4000}})"},
};

Schedule scheduleOf(const config::Config &config) {
  const config::Scheduler &scheduler = config.scheduler;
  Schedule schedule{.lr = config.optimizer.lr};
  if (scheduler.type == config::Scheduler::Type::None)
    return schedule;
  return {.type = std::string(config::name(scheduler.type)),
          .linear = scheduler.warmup == config::Scheduler::Warmup::Linear,
          .lr = config.optimizer.lr,
          .least = scheduler.warmupMinLr,
          .most = scheduler.warmupMaxLr,
          .leastRatio = scheduler.warmupMinRatio,
          .cosineRatio = scheduler.cosMinRatio,
          .warmup = scheduler.warmupNumSteps,
          .total = scheduler.totalNumSteps};
}

TEST(ConfigFile, AgreesWithTheCompiler) {
  for (const Case &one : cases) {
    SCOPED_TRACE(one.text);
    config::ConfigOverrides overrides;
    overrides.ranks = 2;
    overrides.sets = one.overrides;
    overrides.model = {.hiddenSize = 57, .dtype = "bfloat16"};
    const config::Config theirs = config::resolveConfig(one.text, overrides);
    const ConfigFile ours = readConfig(one.text, "test", one.overrides, 2, {.hidden = 57, .bf16 = true});
    EXPECT_EQ(ours.microBatch, uint64_t(theirs.microBatchSize));
    EXPECT_EQ(ours.accumulation, uint64_t(theirs.accumulationSteps));
    EXPECT_EQ(ours.trainBatch, uint64_t(theirs.trainBatchSize));
    EXPECT_EQ(ours.clip, theirs.gradientClipping.value_or(0));
    EXPECT_EQ(ours.bf16, theirs.bf16);
    ASSERT_EQ(ours.fp16.has_value(), theirs.fp16.has_value());
    if (theirs.fp16) {
      EXPECT_EQ(ours.fp16->isDynamic, theirs.fp16->isDynamic());
      EXPECT_EQ(ours.fp16->firstScale, theirs.fp16->firstScale());
      EXPECT_EQ(ours.fp16->least, theirs.fp16->minLossScale);
      EXPECT_EQ(ours.fp16->window, double(theirs.fp16->lossScaleWindow));
      EXPECT_EQ(ours.fp16->hysteresis, double(theirs.fp16->hysteresis));
      EXPECT_EQ(ours.fp16->consecutive, theirs.fp16->consecutiveHysteresis);
    }
    EXPECT_EQ(ours.tokens, theirs.lossByTokens);
    EXPECT_EQ(ours.bucket, uint64_t(theirs.zero.bucketElements()));
    const std::map<std::string, double> wanted = {{"beta1", theirs.optimizer.beta1},
                                                  {"beta2", theirs.optimizer.beta2},
                                                  {"epsilon", theirs.optimizer.epsilon},
                                                  {"weight_decay", theirs.optimizer.weightDecay},
                                                  {"adam_w_mode", theirs.optimizer.adamWMode},
                                                  {"momentum", theirs.optimizer.momentum},
                                                  {"nesterov", theirs.optimizer.nesterov},
                                                  {"lr_decay", theirs.optimizer.lrDecay},
                                                  {"max_coeff", theirs.optimizer.maxCoeff},
                                                  {"min_coeff", theirs.optimizer.minCoeff},
                                                  {"bias_correction", theirs.optimizer.biasCorrection}};
    for (const auto &[name, value] : ours.settings)
      EXPECT_EQ(value, wanted.at(name)) << name;
    const Schedule theirSchedule = scheduleOf(theirs);
    for (const int64_t update : sampledUpdates(ours.schedule))
      EXPECT_EQ(learningRate(ours.schedule, update), learningRate(theirSchedule, update)) << update;
  }
}

TEST(ConfigFile, RefusesWhatIsNoNumber) {
  EXPECT_THROW(readConfig(R"({"train_batch_size": "all"})", "test", {}, 1, {}), std::runtime_error);
  EXPECT_THROW(readConfig(R"({"gradient_clipping": [1]})", "test", {}, 1, {}), std::runtime_error);
  EXPECT_THROW(readConfig(R"({"train_batch_size": 1e300})", "test", {}, 1, {}), std::runtime_error);
}

} // namespace
} // namespace ds::sources
