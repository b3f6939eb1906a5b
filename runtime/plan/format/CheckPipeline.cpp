//===- CheckPipeline.cpp - what is said of a model's stages ---------------===//
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
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

void checkPhase(const proto::Plan &plan, const proto::Role &role, const proto::Routine &routine,
                const std::string &place) {
  using Routine = proto::Routine;
  if (routine.phase() < Routine::PHASE_UNSPECIFIED || routine.phase() > Routine::EVALUATE)
    refuse(place, "there is no phase " + std::to_string(routine.phase()));
  const bool ofRole = routine.phase() == Routine::PHASE_UNSPECIFIED || routine.phase() == Routine::BEGIN ||
                      routine.phase() == Routine::UPDATE || routine.phase() == Routine::METRIC;
  if (routine.phase() != Routine::RECEIVE && ofRole == routine.has_stage())
    refuse(place, "its phase is " + Routine::Phase_Name(routine.phase()) +
                      (ofRole ? ", which is of no stage" : ", and it does not say of which stage"));
  if (!routine.has_stage())
    return;
  checkIndex(routine.stage(), std::max(1, plan.pipeline().stages_size()), "stage", place);
  const uint64_t ranks = axisSize(plan.world(), "pipe"), at = axisCoordinate(plan.world(), "pipe", role.ranks(0));
  if (routine.stage() % ranks != at)
    refuse(place, "its stage " + std::to_string(routine.stage()) + " runs at coordinate " +
                      std::to_string(routine.stage() % ranks) + " of axis pipe, and role " + role.name() +
                      " stands at " + std::to_string(at));
}

} // namespace

void checkPhases(const proto::Plan &plan, const proto::Role &role) {
  for (int i = 0; i < role.routines_size(); ++i)
    checkPhase(plan, role, role.routines(i), describe("routine", i, role.routines(i).name()));
}

void checkPipeline(const proto::Plan &plan) {
  if (!plan.has_pipeline())
    return;
  static const std::set<std::string> schedules{"gpipe", "1f1b", "interleaved", "zb-h1", "accumulate-by-layer"};
  const proto::Pipeline &pipeline = plan.pipeline();
  const uint64_t ranks = axisSize(plan.world(), "pipe");
  if (!schedules.contains(pipeline.schedule()))
    refuse("pipeline", "its schedule is none of gpipe, 1f1b, interleaved, zb-h1, accumulate-by-layer");
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
