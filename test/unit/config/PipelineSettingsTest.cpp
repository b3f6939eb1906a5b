//===- PipelineSettingsTest.cpp - pipeline and deepstatic.pipeline --------===//
#include "compiler/config/Config.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace ds::config {
namespace {

using scheduling::PipelineSchedule;

ConfigOverrides overridesOf(int64_t ranks, std::vector<std::string> sets) {
  ConfigOverrides overrides;
  overrides.ranks = ranks;
  overrides.sets = std::move(sets);
  return overrides;
}

std::string file(const std::string &members) { return R"({"optimizer": {"type": "AdamW"}, )" + members + "}"; }

/// A configuration with two samples a micro-batch, eight accumulation steps and these members.
Config resolve(const std::string &members, int64_t ranks, std::vector<std::string> sets = {}) {
  return resolveConfig(file(R"("train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 8, )" + members),
                       overridesOf(ranks, std::move(sets)));
}

Config resolveOwn(const std::string &pipeline, int64_t ranks) {
  return resolve(R"("deepstatic": {"pipeline": {)" + pipeline + "}}", ranks);
}

ConfigError refusalOf(const std::string &members, int64_t ranks, std::vector<std::string> sets = {}) {
  try {
    resolveConfig(file(members), overridesOf(ranks, std::move(sets)));
  } catch (const ConfigError &error) {
    EXPECT_EQ(error.details, std::vector<std::string>());
    return error;
  }
  ADD_FAILURE() << "accepted: " << members;
  return ConfigError("");
}

/// With eight accumulation steps.
ConfigError refusal(const std::string &members, int64_t ranks, std::vector<std::string> sets = {}) {
  return refusalOf(R"("train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 8, )" + members, ranks,
                   std::move(sets));
}

ConfigError refusalOfOwn(const std::string &pipeline, int64_t ranks) {
  return refusal(R"("deepstatic": {"pipeline": {)" + pipeline + "}}", ranks);
}

KeyAnswer answerOf(const Config &config, std::string_view path) {
  const auto found = std::find_if(config.answers.begin(), config.answers.end(),
                                  [&](const KeyAnswer &answer) { return answer.path == path; });
  return found == config.answers.end() ? KeyAnswer{} : *found;
}

TEST(PipelineSettings, OneStageByDefault) {
  const Config config = resolve(R"("steps_per_print": 1)", 4);
  EXPECT_EQ(config.pipeline.stages, 1);
  EXPECT_EQ(config.ranks, 4);
  EXPECT_EQ(config.worldRanks, 4);
}

TEST(PipelineSettings, StagesDivideTheRanks) {
  const Config config = resolveOwn(R"("stages": 4)", 8);
  EXPECT_EQ(config.pipeline.stages, 4);
  EXPECT_EQ(config.pipeline.chunks, 1);
  EXPECT_EQ(config.pipeline.schedule, PipelineSchedule::OneFOneB);
  EXPECT_EQ(config.pipeline.partition, "best");
  EXPECT_EQ(config.ranks, 2);
  EXPECT_EQ(config.worldRanks, 8);
  EXPECT_EQ(config.trainBatchSize, 2 * 8 * 2); // micro-batch x accumulation x data-parallel width
  EXPECT_EQ(answerOf(config, "deepstatic.pipeline.stages").status, "honoured");
}

TEST(PipelineSettings, DeepSpeedsSection) {
  const Config config = resolve(R"("pipeline": {"stages": 2, "partition": "type:Block", "seed_layers": true,
      "activation_checkpoint_interval": 0, "pipe_partitioned": false, "grad_partitioned": false})",
                                2);
  EXPECT_EQ(config.pipeline.stages, 2);
  EXPECT_EQ(config.pipeline.partition, "type:Block");
  EXPECT_EQ(answerOf(config, "pipeline.stages").status, "honoured");
  EXPECT_EQ(answerOf(config, "pipeline.partition").status, "honoured");
  for (const char *key : {"seed_layers", "pipe_partitioned", "grad_partitioned"}) {
    EXPECT_EQ(answerOf(config, std::string("pipeline.") + key).status, "subsumed") << key;
    EXPECT_NE(answerOf(config, std::string("pipeline.") + key).note, "") << key;
  }
  EXPECT_EQ(resolve(R"("pipeline": {"stages": "auto"})", 2).pipeline.stages, 1);
}

TEST(PipelineSettings, BothSectionsMayAgreeAndSetWins) {
  const std::string both = R"("pipeline": {"stages": 2}, "deepstatic": {"pipeline": {"stages": 2}})";
  EXPECT_EQ(resolve(both, 4).pipeline.stages, 2);
  const Config own = resolve(both, 4, {"deepstatic.pipeline.stages=4"});
  EXPECT_EQ(own.pipeline.stages, 4);
  EXPECT_EQ(answerOf(own, "pipeline.stages"),
            (KeyAnswer{"pipeline.stages", "2", "subsumed", "--set deepstatic.pipeline.stages wins"}));
  EXPECT_EQ(resolve(both, 4, {"pipeline.stages=1"}).pipeline.stages, 1);
  EXPECT_EQ(resolve(R"("pipeline": {"stages": "auto"}, "deepstatic": {"pipeline": {"stages": 2}})", 4).pipeline.stages,
            2);
}

TEST(PipelineSettings, Schedules) {
  EXPECT_EQ(resolveOwn(R"("stages": 2, "schedule": "gpipe")", 2).pipeline.schedule, PipelineSchedule::GPipe);
  EXPECT_EQ(resolveOwn(R"("stages": 2, "schedule": "1F1B")", 2).pipeline.schedule, PipelineSchedule::OneFOneB);
  EXPECT_EQ(resolveOwn(R"("stages": 2, "schedule": "ZB-H1")", 2).pipeline.schedule, PipelineSchedule::ZeroBubbleH1);
  const Config config = resolveOwn(R"("stages": 4, "schedule": "interleaved", "chunks": 3)", 4);
  EXPECT_EQ(config.pipeline.schedule, PipelineSchedule::Interleaved);
  EXPECT_EQ(config.pipeline.chunks, 3);
}

TEST(PipelineSettings, OneStageByLayer) {
  const Config layers = resolveOwn(R"("schedule": "accumulate-by-layer")", 2);
  EXPECT_EQ(layers.pipeline.schedule, PipelineSchedule::AccumulateByLayer);
  EXPECT_EQ(layers.pipeline.stages, 1);
  EXPECT_EQ(layers.pipeline.chunks, 1);
  EXPECT_TRUE(layers.pipeline.isCut());
  EXPECT_EQ(resolveOwn(R"("schedule": "accumulate-by-layer", "chunks": 6)", 1).pipeline.chunks, 6);
  EXPECT_STREQ(
      refusalOfOwn(R"("schedule": "accumulate-by-layer", "chunks": 0)", 1).what(),
      "ds_config.json:1: deepstatic.pipeline.chunks is 0; it is the number of pieces of the model, and must be "
      "at least 1; 1 leaves it to ds-opt");
  const ConfigError stages = refusalOfOwn(R"("stages": 2, "schedule": "accumulate-by-layer")", 2);
  EXPECT_STREQ(stages.what(),
               "ds_config.json:1: deepstatic.pipeline.schedule is \"accumulate-by-layer\"; it orders the micro-batches "
               "of one rank along the pipe, and deepstatic.pipeline.stages is 2");
  EXPECT_EQ(stages.tryLine, "--set deepstatic.pipeline.schedule=1f1b");
}

TEST(PipelineSettings, AutoIsOfOneStage) {
  const Config config = resolveOwn(R"("schedule": "auto", "chunks": 6)", 2);
  EXPECT_TRUE(config.pipeline.scheduleAuto);
  EXPECT_EQ(config.pipeline.schedule, PipelineSchedule::OneFOneB);
  EXPECT_EQ(config.pipeline.chunks, 1);
  EXPECT_TRUE(config.autos.empty()); // ds-opt says it, once it has planned both
  const ConfigError stages = refusalOfOwn(R"("stages": 2, "schedule": "auto")", 2);
  EXPECT_STREQ(stages.what(), "ds_config.json:1: deepstatic.pipeline.schedule is \"auto\"; it orders the micro-batches "
                              "of one rank along the pipe, and deepstatic.pipeline.stages is 2");
}

TEST(PipelineSettings, AutoByLayer) {
  ConfigOverrides overrides = overridesOf(1, {});
  overrides.byLayer = true;
  const auto resolve = [&](const std::string &more) {
    return resolveConfig(file(R"("train_micro_batch_size_per_gpu": 2, )" + more), overrides).pipeline;
  };
  const Pipeline layers =
      resolve(R"("gradient_accumulation_steps": 2, "deepstatic": {"pipeline": {"schedule": "auto", "chunks": 6}})");
  EXPECT_EQ(layers.schedule, PipelineSchedule::AccumulateByLayer);
  EXPECT_EQ(layers.chunks, 6);
  const Pipeline one = resolve(R"("deepstatic": {"pipeline": {"schedule": "auto"}})");
  EXPECT_EQ(one.schedule, PipelineSchedule::OneFOneB);
  EXPECT_FALSE(one.scheduleAuto);
  const Pipeline named =
      resolve(R"("gradient_accumulation_steps": 2, "deepstatic": {"pipeline": {"schedule": "1f1b"}})");
  EXPECT_EQ(named.schedule, PipelineSchedule::OneFOneB);
}

TEST(PipelineSettings, OneMicrobatchNeedsNoOrder) {
  const Config config = resolveConfig(
      file(R"("train_micro_batch_size_per_gpu": 2, "deepstatic": {"pipeline": {"schedule": "accumulate-by-layer"}})"),
      overridesOf(1, {}));
  EXPECT_FALSE(config.pipeline.isCut());
  EXPECT_EQ(answerOf(config, "deepstatic.pipeline.schedule").note, "one micro-batch a step: there is nothing to order");
}

TEST(PipelineSettings, PartitionMethods) {
  const auto method = [](const std::string &written) {
    return resolveOwn(R"("stages": 2, "partition": ")" + written + "\"", 2).pipeline.partition;
  };
  EXPECT_EQ(method("Uniform"), "uniform");
  EXPECT_EQ(method("parameters"), "parameters");
  EXPECT_EQ(method("TYPE:H.[0-9]"), "type:H.[0-9]");
}

TEST(PipelineSettings, OneStageNeedsNoSchedule) {
  const Config config = resolveOwn(R"("stages": 1, "schedule": "interleaved", "chunks": 2, "partition": "uniform")", 2);
  for (const char *key : {"schedule", "chunks", "partition"})
    EXPECT_EQ(answerOf(config, std::string("deepstatic.pipeline.") + key).note,
              "one stage: there is nothing to cut or to order")
        << key;
  EXPECT_EQ(resolvedJson(config), resolvedJson(resolve(R"("steps_per_print": 1)", 2)));
}

TEST(PipelineSettings, ResolvedJsonResolvesToItself) {
  for (const char *pipeline :
       {R"("stages": 2)", R"("stages": 4, "schedule": "interleaved", "chunks": 2, "partition": "parameters")",
        R"("schedule": "accumulate-by-layer")", R"("stages": 8, "schedule": "zb-h1", "partition": "type:Block")"}) {
    const std::string once = resolvedJson(resolveOwn(pipeline, 8));
    EXPECT_EQ(resolvedJson(resolveConfig(once, overridesOf(8, {}))), once);
  }
}

TEST(PipelineSettings, RefusesStagesThatDoNotFitTheRanks) {
  const ConfigError indivisible = refusalOfOwn(R"("stages": 3)", 8);
  EXPECT_STREQ(indivisible.what(),
               "ds_config.json:1: deepstatic.pipeline.stages is 3; it must divide --ranks, which is 8: "
               "2 and 4 do");
  EXPECT_EQ(indivisible.tryLine, "--set deepstatic.pipeline.stages=4");
  EXPECT_STREQ(refusal(R"("pipeline": {"stages": 2})", 3).what(),
               "ds_config.json:1: pipeline.stages is 2; it must divide --ranks, which is 3: 1 and 3 do");
  const ConfigError tooMany = refusalOfOwn(R"("stages": 4)", 2);
  EXPECT_STREQ(tooMany.what(),
               "ds_config.json:1: deepstatic.pipeline.stages is 4; each stage needs a rank of its own, and "
               "--ranks is 2");
  EXPECT_EQ(tooMany.tryLine, "--ranks 4");
  EXPECT_STREQ(
      refusalOfOwn(R"("stages": 0)", 2).what(),
      "ds_config.json:1: deepstatic.pipeline.stages is 0; it is the number of ranks along the pipe and must be "
      "at least 1");
  EXPECT_STREQ(refusal(R"("pipeline": {"stages": "two"})", 2).what(),
               "ds_config.json:1: pipeline.stages is \"two\"; it takes a number of stages or \"auto\"");
}

TEST(PipelineSettings, RefusesSectionsThatDisagree) {
  EXPECT_STREQ(
      refusal("\"pipeline\": {\"stages\": 2},\n\"deepstatic\": {\"pipeline\": {\"stages\": 4}}", 4).what(),
      "ds_config.json:2: deepstatic.pipeline.stages is 4; pipeline.stages, which means the same, is 2; write one "
      "of them, or the same in both");
  EXPECT_STREQ(
      refusal(R"("pipeline": {"partition": "best"}, "deepstatic": {"pipeline": {"partition": "uniform"}})", 4).what(),
      "ds_config.json:1: deepstatic.pipeline.partition is \"uniform\"; pipeline.partition, which means the same, is "
      "\"best\"; write one of them, or the same in both");
}

TEST(PipelineSettings, RefusesChunksThatTheScheduleDoesNotHave) {
  const ConfigError chunks = refusalOfOwn(R"("stages": 2, "chunks": 2)", 2);
  EXPECT_STREQ(chunks.what(),
               "ds_config.json:1: deepstatic.pipeline.chunks is 2; the schedule 1f1b runs 1 chunk of the model "
               "on each rank; interleaved runs several");
  EXPECT_EQ(chunks.tryLine, "--set deepstatic.pipeline.chunks=1");
  EXPECT_STREQ(
      refusalOfOwn(R"("stages": 2, "chunks": 0, "schedule": "gpipe")", 2).what(),
      "ds_config.json:1: deepstatic.pipeline.chunks is 0; the schedule gpipe runs 1 chunk of the model on each "
      "rank; interleaved runs several");
  const ConfigError none = refusalOfOwn(R"("stages": 2, "schedule": "interleaved")", 2);
  EXPECT_STREQ(none.what(),
               "ds_config.json: deepstatic.pipeline.chunks is missing; the schedule interleaved runs at least 2 "
               "chunks of the model on each rank");
  EXPECT_EQ(none.tryLine, "--set deepstatic.pipeline.chunks=2");
  EXPECT_STREQ(
      refusalOfOwn(R"("stages": 2, "schedule": "interleaved", "chunks": 1)", 2).what(),
      "ds_config.json:1: deepstatic.pipeline.chunks is 1; the schedule interleaved runs at least 2 chunks of the "
      "model on each rank");
}

TEST(PipelineSettings, RefusesMicrobatchesThatTheScheduleCannotGroup) {
  const std::string pipeline = R"("deepstatic": {"pipeline": {"stages": 3, "schedule": "interleaved", "chunks": 2}})";
  const ConfigError steps = refusal(pipeline, 3);
  EXPECT_STREQ(steps.what(),
               "ds_config.json:1: gradient_accumulation_steps is 8; the schedule interleaved takes micro-batches "
               "in groups of the 3 stages, so they must be divisible by that: 6 and 9 are");
  EXPECT_EQ(steps.tryLine, "--set gradient_accumulation_steps=9");
  EXPECT_STREQ(refusalOf(R"("train_batch_size": 4, "train_micro_batch_size_per_gpu": 2, )" + pipeline, 3).what(),
               "ds_config.json: the batch sizes make 2 gradient accumulation steps; the schedule interleaved takes "
               "micro-batches in groups of the 3 stages, so they must be divisible by that: 3 is");
}

TEST(PipelineSettings, RefusesNamesWithATypo) {
  const ConfigError schedule = refusalOfOwn(R"("stages": 2, "schedule": "1f1")", 2);
  EXPECT_STREQ(schedule.what(),
               "ds_config.json:1: deepstatic.pipeline.schedule is \"1f1\"; it takes one of [\"gpipe\", "
               "\"1f1b\", \"interleaved\", \"zb-h1\", \"accumulate-by-layer\", \"auto\"]; the nearest is \"1f1b\"");
  EXPECT_STREQ(refusalOfOwn(R"("stages": 2, "partition": "unifrom")", 2).what(),
               "ds_config.json:1: deepstatic.pipeline.partition is \"unifrom\"; it takes \"best\", \"uniform\", "
               "\"parameters\" or \"type:REGEX\"; the nearest is \"uniform\"");
  EXPECT_STREQ(refusal(R"("pipeline": {"stages": 2, "partition": "type:"})", 2).what(),
               "ds_config.json:1: pipeline.partition is \"type:\"; it takes \"best\", \"uniform\", \"parameters\" or "
               "\"type:REGEX\"; the nearest is \"type:REGEX\"");
}

TEST(PipelineSettings, RefusesMoreThanAScheduleMayHold) {
  EXPECT_STREQ(
      refusalOfOwn(R"("stages": 2, "schedule": "interleaved", "chunks": 100000000)", 2).what(),
      "ds_config.json: 8 micro-batches through 2 x 100000000 stages are more than the 10000000 forwards that a "
      "schedule may hold; fewer micro-batches fit");
}

// The width that batch sizes are divided by is the data-parallel one.
TEST(PipelineSettings, BatchSizesCountDataParallelRanks) {
  EXPECT_STREQ(refusalOf(R"("train_batch_size": 3, "pipeline": {"stages": 2})", 4).what(),
               "ds_config.json:1: train_batch_size is 3; it must be a multiple of 2 data-parallel ranks");
}

} // namespace
} // namespace ds::config
