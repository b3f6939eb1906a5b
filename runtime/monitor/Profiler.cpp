//===- Profiler.cpp - tables of where the time of a step goes -------------===//
#include "runtime/monitor/Profiler.h"

#include "runtime/profile/ProfileTables.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <fstream>

namespace ds::runtime {
namespace {

void add(std::vector<CommandTime> &sums, const std::vector<CommandTime> &times) {
  if (sums.empty())
    sums = times;
  else
    for (size_t i = 0; i < times.size(); ++i) {
      sums[i].runs += times[i].runs;
      sums[i].seconds += times[i].seconds;
    }
}

} // namespace

Profile *Profiler::profileOf(const plan::proto::Plan &plan) {
  plan_ = &plan;
  const nlohmann::json config = nlohmann::json::parse(plan.config_json(), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object())
    return nullptr;
  wallClock_ = config.value("wall_clock_breakdown", false);
  stepsPerPrint_ = config.value("steps_per_print", uint64_t(0));
  collectives_ = config.contains("comms_logger");
  if (config.contains("flops_profiler")) {
    flopsStep_ = config["flops_profiler"].value("profile_step", uint64_t(1));
    flopsFile_ = config["flops_profiler"].value("output_file", "");
  }
  if (wallClock_ || collectives_ || flopsStep_ > 0)
    profile_ = std::make_unique<Profile>();
  return profile_.get();
}

void Profiler::stepDone(const StepReport &report) noexcept {
  next_->stepDone(report);
  if (!profile_)
    return;
  const std::vector<CommandTime> times = profile_->take();
  add(sinceShown_, times);
  add(all_, times);
  ++stepsSinceShown_;
  ++steps_;
  lastStep_ = report.step;
  if (report.step == flopsStep_)
    showFlops(times, report.step);
  if (wallClock_ && stepsPerPrint_ > 0 && report.step % stepsPerPrint_ == 0)
    showPhases(report.step);
}

void Profiler::evaluated(const EvaluationReport &report) noexcept {
  next_->evaluated(report);
  if (profile_)
    profile_->take(); // no part of the next step
}

void Profiler::finish() noexcept {
  if (flopsStep_ > 0 && !flopsShown_ && steps_ > 0)
    noted(("flops_profiler.profile_step is " + std::to_string(flopsStep_) + ", and the run was of steps " +
           std::to_string(lastStep_ - steps_ + 1) + " to " + std::to_string(lastStep_) + ": no table of FLOPs")
              .c_str());
  if (wallClock_ && stepsSinceShown_ > 0)
    showPhases(lastStep_);
  if (collectives_ && steps_ > 0)
    shown(("collectives of " + std::to_string(steps_) + " steps:\n" + collectiveTable(*plan_, 0, all_)).c_str());
}

void Profiler::showPhases(uint64_t step) {
  shown(("rank 0, mean of " + std::to_string(stepsSinceShown_) + " steps up to step " + std::to_string(step) + ":\n" +
         phaseTable(sinceShown_, stepsSinceShown_))
            .c_str());
  sinceShown_.clear();
  stepsSinceShown_ = 0;
}

void Profiler::showFlops(const std::vector<CommandTime> &times, uint64_t step) {
  flopsShown_ = true;
  const std::string text = "kernels of rank 0 in step " + std::to_string(step) + ":\n" + flopsTable(*plan_, 0, times);
  if (flopsFile_.empty())
    return shown(text.c_str());
  std::ofstream file(flopsFile_);
  if (!(file << text << std::flush))
    noted(("flops_profiler.output_file " + flopsFile_ + " cannot be written; the run goes on").c_str());
}

} // namespace ds::runtime
