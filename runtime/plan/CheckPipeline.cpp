//===- CheckPipeline.cpp - what is said of a model's stages ---------------===//
#include "runtime/plan/PlanChecks.h"
#include "runtime/plan/plan.pb.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <string>

namespace ds::plan {
namespace {

bool isTime(double seconds) { return seconds >= 0 && std::isfinite(seconds); }

void checkStage(const proto::Stage &stage, int stages, const std::string &place) {
  checkName(stage.first_op(), place);
  checkName(stage.last_op(), place);
  if (!isTime(stage.forward_seconds()) || !isTime(stage.backward_seconds()) || !isTime(stage.weight_seconds()))
    refuse(place, "its seconds are negative or not finite");
  for (const proto::SentValue &sent : stage.sent()) {
    checkName(sent.name(), place);
    checkIndex(sent.to_stage(), stages, "stage", place);
  }
}

} // namespace

void checkPipeline(const proto::Plan &plan) {
  if (!plan.has_pipeline())
    return;
  static const std::set<std::string> schedules{"gpipe", "1f1b", "interleaved", "zb-h1"};
  const proto::Pipeline &pipeline = plan.pipeline();
  const uint64_t ranks = axisSize(plan.world(), "pipe");
  if (!schedules.contains(pipeline.schedule()))
    refuse("pipeline", "its schedule is none of gpipe, 1f1b, interleaved, zb-h1");
  if (uint64_t(pipeline.stages_size()) != ranks * pipeline.chunks() || pipeline.chunks() == 0)
    refuse("pipeline", "it has " + std::to_string(pipeline.stages_size()) + " stages, not " +
                           std::to_string(pipeline.chunks()) + " on each of " + std::to_string(ranks) +
                           " ranks along axis pipe");
  if (!(pipeline.bubble_fraction() >= 0 && pipeline.bubble_fraction() <= 1))
    refuse("pipeline", "its bubble is no fraction of a step");
  for (int i = 0; i < pipeline.stages_size(); ++i)
    checkStage(pipeline.stages(i), pipeline.stages_size(), describe("stage", i, ""));
}

} // namespace ds::plan
