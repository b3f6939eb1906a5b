//===- ConfigErrorTest.cpp - what is refused, and with which words --------===//
#include "compiler/config/Config.h"

#include <gtest/gtest.h>

namespace ds::config {
namespace {

/// The refusal of a configuration of these members and an optimizer; fails where it is accepted.
ConfigError refusal(const std::string &members, int64_t ranks = 1, std::vector<std::string> sets = {},
                    const std::string &optimizer = R"("optimizer": {"type": "AdamW"})") {
  ConfigOverrides overrides;
  overrides.ranks = ranks;
  overrides.sets = std::move(sets);
  try {
    resolveConfig("{" + members + ", " + optimizer + "}", overrides);
  } catch (const ConfigError &error) {
    return error;
  }
  ADD_FAILURE() << "accepted: " << members;
  return ConfigError("");
}

std::string sentence(const std::string &members, int64_t ranks = 1, std::vector<std::string> sets = {}) {
  return refusal(members, ranks, std::move(sets)).what();
}

std::string optimizerSentence(const std::string &optimizer) {
  return refusal("\"train_batch_size\": 1", 1, {}, "\"optimizer\": " + optimizer).what();
}

TEST(ConfigError, BatchSizesThatDisagree) {
  EXPECT_EQ(
      sentence(R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3)", 2),
      "ds_config.json:1: train_batch_size is 32; it must be train_micro_batch_size_per_gpu 4 x "
      "gradient_accumulation_steps 3 x 2 ranks = 24; write that, or leave one of the three out");
  EXPECT_EQ(sentence(R"("train_batch_size": 10, "train_micro_batch_size_per_gpu": 4)"),
            "ds_config.json:1: train_batch_size is 10; it must be a multiple of train_micro_batch_size_per_gpu 4 x "
            "1 rank = 4");
  EXPECT_EQ(sentence(R"("train_batch_size": 10, "gradient_accumulation_steps": 4)", 2),
            "ds_config.json:1: train_batch_size is 10; it must be a multiple of gradient_accumulation_steps 4 x 2 "
            "ranks");
  EXPECT_EQ(sentence(R"("train_batch_size": 3)", 4),
            "ds_config.json:1: train_batch_size is 3; it must be a multiple of 4 ranks");
}

TEST(ConfigError, BatchSizesThatMakeNoSense) {
  EXPECT_EQ(sentence(R"("train_batch_size": 0)"),
            "ds_config.json:1: train_batch_size is 0; it must be from 1 to 2^40 samples");
  EXPECT_EQ(sentence(R"("train_batch_size": 8, "gradient_accumulation_steps": -2)"),
            "ds_config.json:1: gradient_accumulation_steps is -2; it must be from 1 to 2^16 micro-batches");
  EXPECT_EQ(sentence(R"("train_batch_size": 4194304, "train_micro_batch_size_per_gpu": 2)"),
            "ds_config.json:1: train_batch_size is 4194304; it makes 2097152 gradient accumulation steps; there are at "
            "most 2^16");
  EXPECT_EQ(sentence(R"("train_micro_batch_size_per_gpu": 1000000000000)"),
            "ds_config.json:1: train_micro_batch_size_per_gpu is 1000000000000; it must be from 1 to 2^31 samples");
  EXPECT_EQ(sentence(R"("train_batch_size": 1.5)"),
            "ds_config.json:1: train_batch_size is 1.5; it takes an int or null");
  EXPECT_EQ(sentence(R"("train_micro_batch_size_per_gpu": 2147483648)", 1 << 20),
            "ds_config.json:1: train_micro_batch_size_per_gpu is 2147483648; the samples of a step would be more "
            "than 2^40");
  EXPECT_EQ(sentence(R"("gradient_accumulation_steps": 2)"),
            "ds_config.json: train_batch_size or train_micro_batch_size_per_gpu must be given: how many samples an "
            "optimizer step, or a micro-batch, has");
}

TEST(ConfigError, AutoWhereNothingSaysWhat) {
  EXPECT_EQ(sentence(R"("train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto")"),
            "ds_config.json:1: train_micro_batch_size_per_gpu is \"auto\"; nothing says how many samples a micro-batch "
            "has; write the number");
  EXPECT_EQ(sentence(R"("train_batch_size": 1, "scheduler": {"type": "WarmupDecayLR",
                        "params": {"total_num_steps": "auto"}})"),
            "ds_config.json:2: scheduler.params.total_num_steps is \"auto\"; nothing says after how many updates the "
            "decay ends; write the number");
}

TEST(ConfigError, UnknownKeysGetTheNearest) {
  const auto nearest = [](const std::string &member) {
    const std::string text = sentence("\"train_batch_size\": 1, " + member);
    const size_t at = text.find("no such key; the nearest is ");
    return at == std::string::npos ? text : text.substr(at + 28);
  };
  EXPECT_EQ(nearest(R"("gradient_acumulation_steps": 1)"), "gradient_accumulation_steps");
  EXPECT_EQ(nearest(R"("stage": 1)"), "zero_optimization.stage");
  EXPECT_EQ(nearest(R"("zero_optimisation": {"stage": 1})"), "zero_optimization.stage");
  EXPECT_EQ(nearest(R"("zero_optimization": {"stge": 1})"), "zero_optimization.stage");
  EXPECT_EQ(nearest(R"("zero_optimization.stage": 1)"), "zero_optimization.stage");
  EXPECT_EQ(nearest(R"("warmup_num_steps": 1)"), "scheduler.params.warmup_num_steps");
  EXPECT_EQ(nearest(R"("pipeline_parallel": {"pp_size": 2})"), "deepstatic.pipeline.stages");
  EXPECT_EQ(nearest(R"("pipeline_parallel": {"micro_batches": 2})"), "gradient_accumulation_steps");
  EXPECT_EQ(nearest(R"("aio": {"thread_count": 2})"), "aio.intra_op_parallelism");
  EXPECT_EQ(nearest(R"("compress_communication": true)"), "zero_optimization.zero_quantized_gradients");
  EXPECT_EQ(nearest(R"("deepstatic": {"tensor_parallel": {"sise": 1}})"), "deepstatic.tensor_parallel.size");
}

TEST(ConfigError, ZeroOptimization) {
  const auto refused = [](const std::string &member) {
    return sentence("\"train_batch_size\": 4, \"zero_optimization\": {" + member + "}", 4);
  };
  EXPECT_EQ(
      refused(R"("reduce_bucket_size": 0)"),
      "ds_config.json:1: zero_optimization.reduce_bucket_size is 0; it is a number of elements and must be at least 1");
  EXPECT_EQ(
      refused(R"("stage3_max_live_parameters": -1)"),
      "ds_config.json:1: zero_optimization.stage3_max_live_parameters is -1; it is a number of elements and must be "
      "at least 0");
  EXPECT_EQ(
      refused(R"("zero_hpz_partition_size": 3)"),
      "ds_config.json:1: zero_optimization.zero_hpz_partition_size is 3; it is the ranks of a group and must divide "
      "the 4 ranks of --ranks");
}

TEST(ConfigError, WhatIsNotBuiltIsRefusedByName) {
  const auto refused = [](const std::string &member) { return sentence("\"train_batch_size\": 1, " + member); };
  EXPECT_EQ(refused(R"("wandb": {"enabled": true})"), "ds_config.json:1: wandb.enabled is true; this is not available "
                                                      "yet, only false is; tensorboard writes files that "
                                                      "`wandb sync FOLDER` imports");
  for (const char *member :
       {R"("zero_optimization": {"zero_quantized_gradients": true})", R"("prescale_gradients": true)",
        R"("gradient_predivide_factor": 2)", R"("tensor_parallel": {"preset_model": "llama"})",
        R"("tensor_parallel": {"tp_overlap_comm": true})", R"("pipeline": {"activation_checkpoint_interval": 1})",
        R"("weight_quantization": {"enabled": true})",
        R"("comms_logger": {"enabled": true, "prof_ops": ["all_reduce"]})", R"("sequence_parallel_size": 2)",
        R"("compile": {"deepcompile": true, "offload_parameters": true})"})
    EXPECT_NE(refused(member).find("this is not available yet"), std::string::npos) << member;
}

TEST(ConfigError, MastersOfSixteenBitsAsDeepSpeedHasThem) {
  const std::string bf16 = R"("bf16": {"enabled": true, "bf16_master_weights_and_grads": true)",
                    key = "ds_config.json:1: bf16.bf16_master_weights_and_grads is true; ";
  const auto refused = [](const std::string &members, const std::string &optimizer = "AdamW") {
    return std::string(
        refusal("\"train_batch_size\": 4, " + members, 1, {}, R"("optimizer": {"type": ")" + optimizer + "\"}").what());
  };
  EXPECT_EQ(refused(bf16 + R"(, "bf16_optimizer_states": true})"),
            key + "zero_optimization.stage is 0, and master weights have 16 bits with stage 1, 2 or 3 alone");
  EXPECT_EQ(refused(bf16 + R"(}, "zero_optimization": {"stage": 2})"),
            key +
                "with float32 moments the host updates such weights, and zero_optimization.offload_optimizer.device is "
                "\"none\"; with bf16.bf16_optimizer_states the device may");
  EXPECT_EQ(refused(R"("fp16": {"enabled": true, "fp16_master_weights_and_grads": true},
                       "zero_optimization": {"stage": 2})"),
            "ds_config.json:1: fp16.fp16_master_weights_and_grads is true; with float32 moments the host updates such "
            "weights, and zero_optimization.offload_optimizer.device is \"none\"");
  EXPECT_EQ(refused(bf16 + R"(, "bf16_optimizer_states": true}, "zero_optimization": {"stage": 1})", "Lion"),
            key + "only Adam and AdamW update master weights of 16 bits; write one as optimizer.type");
  EXPECT_EQ(refused(R"("bf16": {"enabled": true, "bf16_optimizer_states": true}, "zero_optimization": {"stage": 1})"),
            "ds_config.json:1: bf16.bf16_optimizer_states is true; moments are bfloat16 where master weights are, and "
            "bf16.bf16_master_weights_and_grads is false");
  EXPECT_EQ(refused(bf16 + R"(, "bf16_optimizer_states": true}, "zero_optimization": {"stage": 1},
                            "data_types": {"grad_accum_dtype": "fp32"})"),
            "ds_config.json:2: data_types.grad_accum_dtype is \"fp32\"; where master weights are bf16, so are sums of "
            "gradients");
}

TEST(ConfigError, SumsOfAnotherTypeThanTheModels) {
  const auto refused = [](const std::string &members, int64_t ranks = 1) {
    return sentence("\"train_batch_size\": 4, \"data_types\": {\"grad_accum_dtype\": " + members, ranks);
  };
  EXPECT_EQ(refused(R"("bf16"}, "fp16": {"enabled": true})"),
            "ds_config.json:1: data_types.grad_accum_dtype is \"bf16\"; fp16.enabled is true, and such gradients are "
            "summed in \"fp16\" or \"fp32\"");
  EXPECT_EQ(refused(R"("fp16"}, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2})"),
            "ds_config.json:1: data_types.grad_accum_dtype is \"fp16\"; bf16.enabled is true, and such gradients are "
            "summed in \"bf16\" or \"fp32\"");
  EXPECT_EQ(refused(R"("fp16"}, "zero_optimization": {"stage": 2})"),
            "ds_config.json:1: data_types.grad_accum_dtype is \"fp16\"; fp16.enabled is false, and without its loss "
            "scale sums beyond 65504 would be infinite");
  EXPECT_EQ(refused(R"("bf16"})"), "ds_config.json:1: data_types.grad_accum_dtype is \"bf16\"; a float32 model sums "
                                   "gradients in 16 bits with ZeRO stage 1, 2 or 3 alone");
  EXPECT_EQ(refused(R"("bf16"}, "bf16": {"enabled": true}, "communication_data_type": "fp32")", 2),
            "ds_config.json:1: communication_data_type is \"fp32\"; ranks send what they hold, and "
            "data_types.grad_accum_dtype is \"bf16\"");
}

TEST(ConfigError, RemovedAndMistypedKeys) {
  EXPECT_EQ(sentence(R"("train_batch_size": 1, "amp": {"enabled": true})"),
            "ds_config.json:1: amp is {\"enabled\": true}; DeepSpeed has removed this key; leave it out");
  EXPECT_EQ(sentence(R"("train_batch_size": 1, "fp16": true)"),
            "ds_config.json:1: fp16 is true; it is a section and takes an object of keys");
  EXPECT_EQ(sentence(R"("train_batch_size": 1, "prescale_gradients": "no")"),
            "ds_config.json:1: prescale_gradients is \"no\"; it takes a bool");
  EXPECT_EQ(sentence(R"("train_batch_size": 1, "deepstatic": {"pipeline": {"schedule": "gpip"}})"),
            "ds_config.json:1: deepstatic.pipeline.schedule is \"gpip\"; it takes one of [\"gpipe\", \"1f1b\", "
            "\"interleaved\", \"zb-h1\", \"accumulate-by-layer\", \"auto\"]; the nearest is \"gpipe\"");
}

TEST(ConfigError, Optimizers) {
  EXPECT_EQ(optimizerSentence(R"({"type": "Muon"})"), "ds_config.json:1: optimizer.type is \"Muon\"; this optimizer is "
                                                      "not available; AdamW, Adam, SGD, Adagrad, Lion and Lamb are");
  EXPECT_EQ(optimizerSentence(R"({"params": {"lr": 1}})"),
            "ds_config.json: optimizer.type is missing: no Python passes an optimizer in; write e.g. \"optimizer\": "
            "{\"type\": \"AdamW\", \"params\": {\"lr\": 0.001}}");
  EXPECT_EQ(optimizerSentence(R"({"type": "SGD", "params": {"betas": [0.9, 0.99]}})"),
            "ds_config.json:1: optimizer.params.betas is [0.9, 0.99]; SGD has no such parameter; the nearest is "
            "optimizer.params.fused");
  EXPECT_EQ(optimizerSentence(R"({"type": "AdamW", "params": {"weigth_decay": 0.1}})"),
            "ds_config.json:1: optimizer.params.weigth_decay is 0.1; AdamW has no such parameter; the nearest is "
            "optimizer.params.weight_decay");
  EXPECT_EQ(optimizerSentence(R"({"type": "AdamW", "params": {"max_grad_norm": 1}})"),
            "ds_config.json:1: optimizer.params.max_grad_norm is 1; DeepSpeed takes the largest norm from "
            "gradient_clipping; write it there");
  EXPECT_EQ(optimizerSentence(R"({"type": "Adam", "params": {"amsgrad": true}})"),
            "ds_config.json:1: optimizer.params.amsgrad is true; this is not available yet, only false is");
  EXPECT_EQ(optimizerSentence(R"({"type": "AdamW", "params": {"adam_w_mode": false}})"),
            "ds_config.json:1: optimizer.params.adam_w_mode is false; AdamW always keeps weight decay out of the "
            "moments; write optimizer.type \"Adam\" for the other");
}

TEST(ConfigError, Lamb) {
  EXPECT_EQ(optimizerSentence(R"({"type": "Lamb", "params": {"amsgrad": true}})"),
            "ds_config.json:1: optimizer.params.amsgrad is true; this is not available yet, only false is");
  EXPECT_EQ(optimizerSentence(R"({"type": "Lamb", "params": {"eps_inside_sqrt": true}})"),
            "ds_config.json:1: optimizer.params.eps_inside_sqrt is true; this is not available yet, only false is");
  EXPECT_EQ(optimizerSentence(R"({"type": "Lamb", "params": {"max_grad_norm": 1}})"),
            "ds_config.json:1: optimizer.params.max_grad_norm is 1; DeepSpeed takes the largest norm from "
            "gradient_clipping; write it there");
  EXPECT_EQ(
      optimizerSentence(R"({"type": "Lamb", "params": {"min_coeff": 11}})"),
      "ds_config.json:1: optimizer.params.min_coeff is 11; it must be at most optimizer.params.max_coeff, which is "
      "10.0");
  EXPECT_EQ(
      optimizerSentence(R"({"type": "Lamb", "params": {"max_coeff": 0.5, "min_coeff": 0.75}})"),
      "ds_config.json:1: optimizer.params.min_coeff is 0.75; it must be at most optimizer.params.max_coeff, which "
      "is 0.5");
  EXPECT_EQ(
      optimizerSentence(R"({"type": "Lamb"}, "zero_optimization": {"stage": 2})"),
      "ds_config.json:1: zero_optimization.stage is 2; Lamb's trust ratio is of whole parameters, and stages 1 to 3 "
      "give each rank slices of them; write 0, or another optimizer.type");
}

TEST(ConfigError, ParametersOutOfRange) {
  EXPECT_EQ(optimizerSentence(R"({"type": "AdamW", "params": {"lr": -1}})"),
            "ds_config.json:1: optimizer.params.lr is -1; it must be from 0 to 1e300");
  EXPECT_EQ(
      optimizerSentence(R"({"type": "AdamW", "params": {"betas": [0.9, 1]}})"),
      "ds_config.json:1: optimizer.params.betas is [0.9, 1]; it must be two numbers in [0, 1), e.g. [0.9, 0.999]");
  EXPECT_EQ(optimizerSentence(R"({"type": "SGD", "params": {"nesterov": true}})"),
            "ds_config.json:1: optimizer.params.nesterov is true; Nesterov's momentum needs optimizer.params.momentum "
            "above 0");
  EXPECT_EQ(sentence(R"("train_batch_size": 1, "gradient_clipping": -1)"),
            "ds_config.json:1: gradient_clipping is -1; it is the largest global norm of the gradients; write 0 for no "
            "clipping");
  const auto checkpoint = [](const std::string &members) {
    return sentence(R"("train_batch_size": 1, "deepstatic": {"checkpoint": {)" + members + "}}");
  };
  EXPECT_EQ(
      sentence(R"("train_batch_size": 1, "fp16": {"enabled": true}, "deepstatic": {"loss_normalization": "tokens"})"),
      "ds_config.json:1: deepstatic.loss_normalization is \"tokens\"; with fp16.enabled it is not available yet; bf16 "
      "has it");
  EXPECT_EQ(sentence(R"("train_batch_size": 1, "deepstatic": {"fp8": "tensor"})"),
            "ds_config.json:1: deepstatic.fp8 is \"tensor\"; what such products read and write is bfloat16, and "
            "bf16.enabled is false");
  EXPECT_EQ(checkpoint(R"("buffer": 0)"),
            "ds_config.json:1: deepstatic.checkpoint.buffer is 0; it must be more than 0 bytes");
  EXPECT_EQ(
      checkpoint(R"("snapshot": "blocking", "buffer": "1MiB")"),
      "ds_config.json:1: deepstatic.checkpoint.buffer is \"1MiB\"; with \"snapshot\": \"blocking\" a step waits for "
      "the disk, and there is no buffer");
  EXPECT_EQ(sentence(R"("train_batch_size": 1, "deepstatic": {"device_memory": "2 apples"})"),
            "ds_config.json:1: deepstatic.device_memory is \"2 apples\"; write a number of bytes or a size such as "
            "\"2GiB\"");
}

TEST(ConfigError, Schedulers) {
  const auto refused = [](const std::string &scheduler) {
    return sentence("\"train_batch_size\": 1, \"scheduler\": " + scheduler);
  };
  EXPECT_EQ(refused(R"({"type": "Cosine"})"),
            "ds_config.json:1: scheduler.type is \"Cosine\"; it takes one of [\"LRRangeTest\", \"OneCycle\", "
            "\"WarmupLR\", \"WarmupDecayLR\", \"WarmupCosineLR\"]; the nearest is \"OneCycle\"");
  EXPECT_EQ(refused(R"({"type": "OneCycle", "params": {"cycle_max_lr": 1, "cycle_min_lr": 0, "cycle_max_mom": 1}})"),
            "ds_config.json:1: scheduler.params.cycle_max_mom is 1; it must be at least 0 and below 1");
  EXPECT_EQ(
      refused(R"({"type": "LRRangeTest", "params": {"lr_range_test_step_size": 0}})"),
      "ds_config.json:1: scheduler.params.lr_range_test_step_size is 0; it must be at least 1 (and at most 2^53)");
  EXPECT_EQ(refused(R"({"type": "WarmupDecayLR"})"),
            "ds_config.json: scheduler.params.total_num_steps is missing; WarmupDecayLR needs the number of updates "
            "after which the decay ends");
  EXPECT_EQ(refused(R"({"type": "WarmupLR", "params": {"total_num_steps": 5}})"),
            "ds_config.json:1: scheduler.params.total_num_steps is 5; WarmupLR has no such parameter; the nearest is "
            "scheduler.params.warmup_num_steps");
  EXPECT_EQ(refused(R"({"type": "WarmupLR", "params": {"warmup_type": "cosine"}})"),
            "ds_config.json:1: scheduler.params.warmup_type is \"cosine\"; it takes one of [\"log\", \"linear\"]; the "
            "nearest is \"log\"");
  EXPECT_EQ(refused(R"({"type": "WarmupLR", "params": {"warmup_num_steps": -1}})"),
            "ds_config.json:1: scheduler.params.warmup_num_steps is -1; it must be at least 0 (and at most 2^53)");
  EXPECT_EQ(refused(R"({"type": "WarmupLR", "params": {"last_batch_iteration": 3}})"),
            "ds_config.json:1: scheduler.params.last_batch_iteration is 3; this is not available yet, only -1 is");
  EXPECT_EQ(refused(R"({"params": {"warmup_num_steps": 1}})"),
            "ds_config.json: scheduler.type is missing; scheduler.params needs it; WarmupLR, WarmupDecayLR, "
            "WarmupCosineLR, LRRangeTest and OneCycle are available");
}

TEST(ConfigError, AllOfThemAreReportedTheFirstFirst) {
  const ConfigError error = refusal("\n\"wandb\": {\"enabled\": true},\n\"prescale_gradients\": true,\n\"foo\": 1");
  EXPECT_STREQ(error.what(), "ds_config.json:2: wandb.enabled is true; this is not available yet, only false is; "
                             "tensorboard writes files that "
                             "`wandb sync FOLDER` imports");
  EXPECT_EQ(error.tryLine, "--set wandb.enabled=false --set prescale_gradients=false "
                           "--set train_micro_batch_size_per_gpu=8");
  ASSERT_EQ(error.details.size(), 3u);
  EXPECT_EQ(error.details[0], "ds_config.json:3: prescale_gradients is true; this is not available yet, only false is");
  EXPECT_EQ(error.details[1].substr(0, 33), "ds_config.json:4: foo is 1; no su");
  EXPECT_EQ(error.details[2].substr(0, 32), "ds_config.json: train_batch_size");
  ASSERT_EQ(error.answers.size(), 4u);
  EXPECT_EQ(error.answers[0].status, "rejected");
  EXPECT_EQ(error.answers[3].path, "optimizer.type");
  EXPECT_EQ(error.answers[3].status, "honoured");
}

TEST(ConfigError, AliasesMustAgree) {
  EXPECT_EQ(sentence("\"train_batch_size\": 1,\n\"bf16\": {\"enabled\": false},\n\"bfloat16\": {\"enabled\": true}"),
            "ds_config.json:3: bfloat16 is {\"enabled\": true} but bf16, which it is another name of, is {\"enabled\": "
            "false} on line 2; remove one of them");
}

TEST(ConfigError, Set) {
  const auto refused = [](const std::string &set) { return sentence("\"train_batch_size\": 1", 1, {set}); };
  EXPECT_EQ(refused("nothing"), "--set nothing: is not of the form KEY.PATH=VALUE");
  EXPECT_EQ(refused("=1"), "--set =1: is not of the form KEY.PATH=VALUE");
  EXPECT_EQ(refused("a..b=1"), "--set a..b: the path has an empty part; write the keys joined by single dots");
  EXPECT_EQ(refused("train_batch_size.x=1"), "--set train_batch_size.x: train_batch_size is 1, which has no keys below "
                                             "it");
  EXPECT_EQ(refused("train_batch_size="), "--set train_batch_size: there is no value");
  EXPECT_EQ(refused("train_batch_size=[1"), "--set train_batch_size: the list that begins here is never closed with "
                                            "']'");
  EXPECT_EQ(refused("zero_optimization.stage=4"), "--set: zero_optimization.stage is 4; it takes one of [0, 1, 2, 3]");
  EXPECT_EQ(refused(std::string(300, 'a') + "=1").substr(0, 10), "--set aaaa");
  EXPECT_EQ(refused("opt\x97m=1"), "--set \"opt\ufffdm\": the path holds a character that no key has"); // not UTF-8
  EXPECT_EQ(refused("a\nb=1"), "--set \"a\\nb\": the path holds a character that no key has");
}

TEST(ConfigError, Ranks) {
  EXPECT_EQ(sentence("\"train_batch_size\": 1", 0), "--ranks is 0; it must be at least 1 (and at most 2^20)");
}

std::string remediesFor(const std::string &members, std::vector<std::string> sets = {}) {
  ConfigOverrides overrides;
  overrides.sets = std::move(sets);
  try {
    resolveConfig("{" + members + "}", overrides);
  } catch (const ConfigError &error) {
    return error.tryLine;
  }
  return "accepted";
}

TEST(ConfigError, TheLineToTryNamesEveryKey) {
  EXPECT_EQ(remediesFor(R"("train_batch_size": 1, "amp": {"enabled": true}, "prescale_gradients": true,
                           "zero_optimization": {"stage": 2, "zero_quantized_weights": true})"),
            "--set amp=null --set prescale_gradients=false --set zero_optimization.zero_quantized_weights=false");
  EXPECT_EQ(remediesFor(R"("train_batch_size": 1, "zero_optimization": {"offload_optimizer": {"device": "nvme"}})"),
            "--set deepstatic.nvme_path=/tmp");
  EXPECT_EQ(remediesFor(R"("train_batch_size": 1, "deepstatic": {"delayed_update": true})"),
            "--set zero_optimization.offload_optimizer.device=cpu");
  EXPECT_EQ(remediesFor(R"("train_batch_size": 1, "deepstatic": {"delayed_update": true},
                           "zero_optimization": {"offload_optimizer": {"device": "cpu"}})"),
            "accepted");
  EXPECT_EQ(remediesFor(R"("gradient_clipping": "auto")"), "--set train_micro_batch_size_per_gpu=8");
  EXPECT_EQ(remediesFor(R"("train_batch_size": 1, "optimizer": {"type": "Adam", "params": {"max_grad_norm": 0.5}})"),
            "--set optimizer.params.max_grad_norm=null --set gradient_clipping=0.5");
}

TEST(ConfigError, Float16) {
  EXPECT_EQ(sentence(R"("train_batch_size": 1, "fp16": {"enabled": true}, "bf16": {"enabled": true})"),
            "ds_config.json:1: fp16.enabled is true; so is bf16.enabled, and a plan computes in one of the two");
  EXPECT_EQ(sentence(R"("train_batch_size": 1, "fp16": {"enabled": true, "initial_scale_power": 127})"),
            "ds_config.json:1: fp16.initial_scale_power is 127; it must be a whole number from 0 to 126");
  EXPECT_EQ(sentence(R"("train_batch_size": 1, "fp16": {"enabled": true, "loss_scale": 0.1})"),
            "ds_config.json:1: fp16.loss_scale is 0.1; it must be 0, for a dynamic scale, or a float32 above 0 and at "
            "most 2^126");
  EXPECT_EQ(remediesFor(R"("train_batch_size": 1, "fp16": {"enabled": true, "loss_scale": 128})"), "accepted");
}

TEST(ConfigError, NullLeavesAKeyOut) {
  const std::string text = R"("train_batch_size": 1, "amp": {"enabled": true}, "optimizer": {"type": "AdamW",
                              "params": {"no_such": 1, "lr": 1}})";
  EXPECT_EQ(remediesFor(text, {"amp=null", "optimizer.params.no_such=null"}), "accepted");
  EXPECT_EQ(remediesFor(text, {"amp=null", "optimizer.params=null"}), "accepted");
  EXPECT_EQ(remediesFor(text, {"amp=null", "optimizer=null", "train_batch_size=null"}),
            "--set train_micro_batch_size_per_gpu=8");
  EXPECT_EQ(remediesFor(R"("train_batch_size": 1)", {"scheduler.params.warmup_num_steps=null", "fp16=null"}),
            "accepted");
  ConfigOverrides overrides;
  overrides.sets = {"gradient_cliping=null"};
  try {
    resolveConfig("{}", overrides);
    FAIL() << "accepted";
  } catch (const ConfigError &error) {
    EXPECT_STREQ(error.what(), "--set gradient_cliping: there is no such key to leave out; the nearest is "
                               "gradient_clipping");
  }
}

TEST(ConfigError, KeysOfARefusedFeatureAreNotHonoured) {
  ConfigOverrides overrides;
  try {
    resolveConfig(R"({"train_batch_size": 1, "wandb": {"enabled": true, "team": "x", "group": "y"},
                      "zero_optimization": {"zenflow": {"topk_ratio": 0.2}}})",
                  overrides);
    FAIL() << "accepted";
  } catch (const ConfigError &error) {
    EXPECT_EQ(error.details.size(), 1u); // one sentence a feature
    for (const KeyAnswer &answer : error.answers)
      EXPECT_EQ(answer.status, answer.path == "train_batch_size" ? "honoured" : "rejected") << answer.path;
  }
}

} // namespace
} // namespace ds::config
