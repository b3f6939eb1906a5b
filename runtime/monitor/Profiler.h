//===- Profiler.h - tables of where the time of a step goes ---------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/profile/Profile.h"
#include "runtime/profile/ProfileTables.h"
#include "runtime/session/StepReport.h"
#include "runtime/session/Training.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ds::runtime {

/// Shows the tables that the plan's configuration asks for (wall_clock_breakdown, comms_logger, flops_profiler), of the
/// first rank of each role where rank 0's process has it; passes all that it is told on.
class Profiler final : public TrainingObserver {
public:
  /// TrainingOptions::profile. The plan outlives it. Throws ds::Error where its configuration is none.
  Profile *profileOf(const plan::proto::Plan &plan);
  /// Who is told; before the first step.
  void passTo(TrainingObserver &next) { next_ = &next; }
  /// What is shown at the end of a run.
  void finish() noexcept;

  void stepDone(const StepReport &report) noexcept override;
  void evaluated(const EvaluationReport &report) noexcept override;
  void saved(double seconds) noexcept override;
  void noted(const char *sentence) noexcept override { next_->noted(sentence); }
  void shown(const char *table) noexcept override { next_->shown(table); }

private:
  void showPhases();
  void showCommunication();
  void showFlops(const std::vector<CommandTime> &times, const StepReport &report);

  TrainingObserver *next_ = nullptr;
  const plan::proto::Plan *plan_ = nullptr;
  std::unique_ptr<Profile> profile_; // null: nothing is asked for
  bool wallClock_ = false, collectives_ = false;
  uint64_t stepsPerPrint_ = 0, flopsStep_ = 0; // 0: at the end; never
  std::string flopsFile_;
  std::vector<CommandTime> sinceShown_, all_; // summed over steps
  StepTimes stepsSinceShown_;
  uint64_t steps_ = 0, lastStep_ = 0;
  bool flopsShown_ = false;
};

} // namespace ds::runtime
