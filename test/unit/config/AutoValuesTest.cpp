//===- AutoValuesTest.cpp - what "auto" stands for ------------------------===//
#include "compiler/config/Config.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace ds::config {
namespace {

Config resolve(const std::string &text, std::optional<ModelFacts> model, std::vector<std::string> sets = {}) {
  ConfigOverrides overrides;
  overrides.ranks = 2;
  overrides.sets = std::move(sets);
  overrides.model = std::move(model);
  return resolveConfig(text, overrides);
}

/// Hugging Face's, in its own order.
constexpr const char *stock = R"({
  "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto", "loss_scale": 0, "initial_scale_power": 16},
  "optimizer": {"type": "AdamW",
                "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
  "scheduler": {"type": "WarmupLR",
                "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto"}},
  "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
                        "stage3_param_persistence_threshold": "auto"},
  "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": "auto"})";

std::map<std::string, std::string> valuesOf(const Config &config) {
  std::map<std::string, std::string> values;
  for (const AutoValue &value : config.autos)
    values[value.path] = value.valueJson;
  return values;
}

TEST(AutoValues, AStockConfiguration) {
  const Config config =
      resolve(stock, ModelFacts{.hiddenSize = 768, .dtype = "float32"}, {"train_micro_batch_size_per_gpu=4"});
  EXPECT_EQ(config.zero.reduceBucketSize, 768 * 768);
  EXPECT_EQ(config.zero.prefetchBucketSize, 530841); // int(0.9 * 768 * 768)
  EXPECT_EQ(config.zero.paramPersistenceThreshold, 7680);
  EXPECT_EQ(config.optimizer.lr, 5e-5);
  EXPECT_EQ(config.scheduler.warmupMaxLr, 5e-5);
  EXPECT_EQ(config.scheduler.warmupNumSteps, 0);
  EXPECT_FALSE(config.bf16);
  const std::map<std::string, std::string> expected = {{"bf16.enabled", "false"},
                                                       {"fp16.enabled", "false"},
                                                       {"gradient_accumulation_steps", "1"},
                                                       {"gradient_clipping", "1.0"},
                                                       {"optimizer.params.betas", "[0.9, 0.999]"},
                                                       {"optimizer.params.eps", "1e-08"},
                                                       {"optimizer.params.lr", "5e-05"},
                                                       {"optimizer.params.weight_decay", "0.0"},
                                                       {"scheduler.params.warmup_max_lr", "5e-05"},
                                                       {"scheduler.params.warmup_min_lr", "0.0"},
                                                       {"scheduler.params.warmup_num_steps", "0"},
                                                       {"train_batch_size", "8"},
                                                       {"zero_optimization.reduce_bucket_size", "589824"},
                                                       {"zero_optimization.stage3_param_persistence_threshold", "7680"},
                                                       {"zero_optimization.stage3_prefetch_bucket_size", "530841"}};
  EXPECT_EQ(valuesOf(config), expected);
}

TEST(AutoValues, AnswersSayValueAndReason) {
  const Config config =
      resolve(stock, ModelFacts{.hiddenSize = 768, .dtype = "bfloat16"}, {"train_micro_batch_size_per_gpu=4"});
  std::map<std::string, KeyAnswer> answers;
  for (const KeyAnswer &answer : config.answers)
    answers[answer.path] = answer;
  EXPECT_EQ(answers.at("zero_optimization.reduce_bucket_size"),
            (KeyAnswer{"zero_optimization.reduce_bucket_size", "589824", "honoured",
                       "\"auto\": the model's hidden size 768 squared"}));
  EXPECT_EQ(answers.at("bf16.enabled").note, "\"auto\": the model's parameters are bfloat16");
  EXPECT_EQ(answers.at("train_batch_size").valueJson, "8");
  EXPECT_EQ(answers.at("train_micro_batch_size_per_gpu").note, ""); // --set says it
  EXPECT_TRUE(config.bf16);
}

TEST(AutoValues, KeysWithAnAutoOfTheirOwnKeepIt) {
  const Config config = resolve(R"({train_batch_size: 2, pipeline: {stages: "auto"}, deepstatic: {recompute: "auto"},
                                    tensorboard: {job_name: "auto"}, optimizer: {type: "AdamW"}})",
                                std::nullopt);
  EXPECT_TRUE(config.autos.empty());
}

TEST(AutoValues, BatchSizesLeaveTheThird) {
  const Config config = resolve(R"({train_batch_size: 24, train_micro_batch_size_per_gpu: "auto",
                                    gradient_accumulation_steps: 3, optimizer: {type: "AdamW"}})",
                                std::nullopt);
  EXPECT_EQ(valuesOf(config), (std::map<std::string, std::string>{{"train_micro_batch_size_per_gpu", "4"}}));
}

TEST(AutoValues, WhatPlansSayOfTheRatioStands) {
  const std::string text = R"({train_batch_size: 2, optimizer: {type: "AdamW"},
                               zero_optimization: {offload_optimizer: {device: "cpu", ratio: "auto"}}})";
  const std::string path = "zero_optimization.offload_optimizer.ratio";
  EXPECT_EQ(valuesOf(resolve(text, std::nullopt)), (std::map<std::string, std::string>{{path, "1.0"}}));
  ConfigOverrides overrides;
  overrides.ranks = 2;
  overrides.offloadRatio = AutoValue{.path = path, .valueJson = "0.7", .why = "a step is shorter"};
  const Config config = resolveConfig(text, overrides);
  EXPECT_EQ(config.offloadRatio, 0.7);
  EXPECT_EQ(config.autos, (std::vector<AutoValue>{*overrides.offloadRatio}));
}

TEST(AutoValues, AModelWithoutMatricesIsAsked) {
  try {
    resolve(R"({train_batch_size: 2, optimizer: {type: "AdamW"},
                zero_optimization: {stage: 2, reduce_bucket_size: "auto"}})",
            ModelFacts{.dtype = "float32"});
    FAIL() << "accepted";
  } catch (const ConfigError &error) {
    EXPECT_STREQ(error.what(),
                 "ds_config.json:2: zero_optimization.reduce_bucket_size is \"auto\"; no trained parameter "
                 "is a matrix that would say the model's hidden size; write the number of elements");
    EXPECT_EQ(error.tryLine, "--set zero_optimization.reduce_bucket_size=500000000");
  }
}

} // namespace
} // namespace ds::config
