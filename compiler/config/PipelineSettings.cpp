//===- PipelineSettings.cpp - pipeline and deepstatic.pipeline ------------===//
#include "compiler/config/Config.h"
#include "compiler/config/Hjson.h"
#include "compiler/config/Resolver.h"
#include "compiler/scheduling/PartitionMethod.h"
#include "compiler/scheduling/PipelineSchedule.h"
#include "core/NearestName.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ds::config {
namespace {

using scheduling::PartitionMethod;
using scheduling::PipelineSchedule;

constexpr std::string_view ownStages = "deepstatic.pipeline.stages", ownPartition = "deepstatic.pipeline.partition",
                           stages = "pipeline.stages", partition = "pipeline.partition",
                           schedule = "deepstatic.pipeline.schedule", chunks = "deepstatic.pipeline.chunks";

std::string text(int64_t number) { return std::to_string(number); }

std::string set(std::string_view path, const std::string &value) { return "--set " + std::string(path) + "=" + value; }

std::string lower(std::string_view word) {
  std::string result(word);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return result;
}

/// The one of two keys with the same meaning that holds: what was written, --set before the file.
std::string_view whichHolds(Resolver &resolver, std::string_view own, std::string_view other) {
  const Node *mine = resolver.find(own), *theirs = resolver.find(other);
  if (!mine)
    return other;
  if (!theirs || sameValue(*mine, *theirs) || lower(theirs->text) == "auto")
    return own;
  if ((mine->line == 0) == (theirs->line == 0)) {
    resolver.refuse(own, std::string(other) + ", which means the same, is " + shortJson(*theirs) +
                             "; write one of them, or the same in both");
    return own;
  }
  const bool mineWins = mine->line == 0;
  resolver.subsume(mineWins ? other : own, "--set " + std::string(mineWins ? own : other) + " wins");
  return mineWins ? own : other;
}

/// Ranks along the pipe, if they are what they can be.
std::optional<int64_t> readStages(Resolver &resolver, int64_t ranks) {
  const std::string_view path = whichHolds(resolver, ownStages, stages);
  if (const auto word = resolver.string(path); word && lower(*word) != "auto") {
    resolver.refuse(path, "it takes a number of stages or \"auto\"", set(path, "1"));
    return std::nullopt;
  }
  const int64_t count = resolver.integer(path).value_or(resolver.defaultOf(ownStages).integer);
  if (count >= 1 && ranks % count == 0)
    return count;
  if (count < 1)
    resolver.refuse(path, "it is the number of ranks along the pipe and must be at least 1", set(path, "1"));
  else if (count > ranks)
    resolver.refuse(path, "each stage needs a rank of its own, and --ranks is " + text(ranks),
                    "--ranks " + text(count));
  else {
    const auto [below, above] = divisorsBeside(ranks, count);
    resolver.refuse(
        path, "it must divide --ranks, which is " + text(ranks) + ": " + text(below) + " and " + text(above) + " do",
        set(path, text(above)));
  }
  return std::nullopt;
}

/// What holds where there is nothing to cut.
Pipeline defaultPipeline(const Resolver &resolver) {
  return {.stages = resolver.defaultOf(ownStages).integer,
          .chunks = resolver.defaultOf(chunks).integer,
          .schedule = *scheduling::pipelineScheduleFromName(resolver.defaultOf(schedule).text),
          .partition = resolver.defaultOf(ownPartition).text};
}

void readPartition(Resolver &resolver, Pipeline &pipeline) {
  static constexpr std::string_view methods[] = {"best", "uniform", "parameters", "type:"};
  const std::string_view path = whichHolds(resolver, ownPartition, partition);
  const auto written = resolver.string(path);
  if (!written)
    return;
  // Names are compared without regard to case, an expression is kept.
  const size_t colon = std::min(written->find(':'), written->size());
  pipeline.partition = lower(written->substr(0, colon)) + std::string(written->substr(colon));
  if (!PartitionMethod::fromName(pipeline.partition)) {
    const std::string nearest(nearestName(pipeline.partition, methods));
    resolver.refuse(path, R"(it takes "best", "uniform", "parameters" or "type:REGEX"; the nearest is ")" + nearest +
                              (nearest.ends_with(':') ? "REGEX\"" : "\""));
  }
}

/// One rank runs all layers; with one chunk, the default, a stage is a layer.
void readLayers(Resolver &resolver, Pipeline &pipeline, int64_t written) {
  pipeline.chunks = std::max<int64_t>(1, written);
  if (written < 1)
    resolver.refuse(chunks, "it is the number of pieces of the model, and must be at least 1; 1 leaves it to ds-opt",
                    set(chunks, "1"));
  if (pipeline.stages == 1)
    return;
  resolver.refuse(schedule,
                  "it orders the micro-batches of one rank along the pipe, and deepstatic.pipeline.stages is " +
                      text(pipeline.stages),
                  set(schedule, "1f1b"));
  pipeline.schedule = PipelineSchedule::OneFOneB; // no more is said of it
  pipeline.scheduleAuto = false;
}

/// The schedule and its chunks go together.
void readSchedule(Resolver &resolver, bool byLayer, Pipeline &pipeline) {
  if (const auto name = resolver.string(schedule)) {
    pipeline.scheduleAuto = lower(*name) == "auto";
    if (const auto known = scheduling::pipelineScheduleFromName(lower(*name))) // the table of keys has refused others
      pipeline.schedule = *known;
    if (pipeline.scheduleAuto && byLayer)
      pipeline.schedule = PipelineSchedule::AccumulateByLayer;
  }
  const bool interleaved = pipeline.schedule == PipelineSchedule::Interleaved;
  const int64_t written = resolver.integerOrDefault(chunks);
  if (pipeline.schedule == PipelineSchedule::AccumulateByLayer || pipeline.scheduleAuto) {
    readLayers(resolver, pipeline, written);
    if (pipeline.schedule != PipelineSchedule::AccumulateByLayer) // the other order, of one piece
      pipeline.chunks = 1;
    return;
  }
  pipeline.chunks = interleaved ? std::max<int64_t>(2, written) : 1;
  if (written == pipeline.chunks)
    return;
  const std::string reason = interleaved ? "the schedule interleaved runs at least 2 chunks of the model on each rank"
                                         : "the schedule " + std::string(name(pipeline.schedule)) +
                                               " runs 1 chunk of the model on each rank; interleaved runs several";
  resolver.refuse(chunks, reason, set(chunks, text(pipeline.chunks)));
}

} // namespace

std::pair<int64_t, int64_t> divisorsBeside(int64_t whole, int64_t part) {
  int64_t below = part, above = part;
  while (whole % below != 0)
    --below;
  while (whole % above != 0)
    ++above;
  return {below, above};
}

void resolvePipeline(Resolver &resolver, const ConfigOverrides &overrides, Config &config) {
  Pipeline &pipeline = config.pipeline;
  pipeline = defaultPipeline(resolver);
  pipeline.stages = readStages(resolver, config.worldRanks).value_or(pipeline.stages);
  config.ranks = config.worldRanks / pipeline.stages;
  readPartition(resolver, pipeline);
  readSchedule(resolver, overrides.byLayer, pipeline);
  if (pipeline.isCut() || pipeline.scheduleAuto)
    return;
  pipeline = defaultPipeline(resolver);
  for (std::string_view path : {schedule, chunks, ownPartition, partition})
    resolver.subsume(path, "one stage: there is nothing to cut or to order");
}

void checkMicrobatches(Resolver &resolver, Config &config) {
  static constexpr std::string_view steps = "gradient_accumulation_steps";
  Pipeline &pipeline = config.pipeline;
  const int64_t microbatches = config.accumulationSteps;
  if ((!pipeline.isCut() && !pipeline.scheduleAuto) || microbatches == 0) // refused before
    return;
  if ((pipeline.schedule == PipelineSchedule::AccumulateByLayer || pipeline.scheduleAuto) && microbatches == 1) {
    pipeline = defaultPipeline(resolver);
    for (std::string_view path : {schedule, chunks})
      resolver.subsume(path, "one micro-batch a step: there is nothing to order");
    return;
  }
  if (pipeline.schedule == PipelineSchedule::Interleaved && microbatches % pipeline.stages != 0) {
    const int64_t above = (microbatches / pipeline.stages + 1) * pipeline.stages, below = above - pipeline.stages;
    const std::string reason = "the schedule interleaved takes micro-batches in groups of the " +
                               text(pipeline.stages) + " stages, so they must be divisible by that: " +
                               (below > 0 ? text(below) + " and " + text(above) + " are" : text(above) + " is");
    if (resolver.find(steps))
      return resolver.refuse(steps, reason, resolver.find("train_batch_size") ? "" : set(steps, text(above)));
    return resolver.refuseWhole("the batch sizes make " + text(microbatches) + " gradient accumulation steps; " +
                                reason);
  }
  const scheduling::ScheduleProblem problem{pipeline.schedule, pipeline.stages, pipeline.chunks, microbatches, 1, 1, 1};
  if (const auto fault = problem.check())
    resolver.refuseWhole(*fault);
}

} // namespace ds::config
