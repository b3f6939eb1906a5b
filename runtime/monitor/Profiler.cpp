//===- Profiler.cpp - tables of where the time of a step goes -------------===//
#include "runtime/monitor/Profiler.h"

#include "core/Error.h"
#include "runtime/profile/ProfileTables.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <fstream>
#include <span>
#include <type_traits>

namespace ds::runtime {
namespace {

using nlohmann::json;

void add(std::vector<CommandTime> &sums, const std::vector<CommandTime> &times) {
  if (sums.empty())
    sums = times;
  else
    for (size_t i = 0; i < times.size(); ++i) {
      sums[i].runs += times[i].runs;
      sums[i].seconds += times[i].seconds;
    }
}

/// Of a rank at a time; they lie one rank after the other.
std::vector<std::span<const CommandTime>> byRank(std::span<const CommandTime> times) {
  std::vector<std::span<const CommandTime>> ranks;
  for (size_t begin = 0, end = 0; begin < times.size(); begin = end) {
    while (end < times.size() && times[end].command.rank == times[begin].command.rank)
      ++end;
    ranks.push_back(times.subspan(begin, end - begin));
  }
  return ranks;
}

/// "rank 0"; of several roles "rank 2 (stage1)"
std::string nameOf(const plan::proto::Plan &plan, std::span<const CommandTime> rank) {
  const ProfiledCommand &command = rank[0].command;
  return "rank " + std::to_string(command.rank) + (plan.roles_size() > 1 ? " (" + command.role->name() + ")" : "");
}

/// A key's value, or what it is where it is not written.
template <typename T> T valueOf(const json &section, const std::string &path, T otherwise, const char *rule) {
  const std::string key = path.substr(path.find('.') + 1);
  if (!section.contains(key))
    return otherwise;
  const json &value = section[key];
  const bool fits = std::is_same_v<T, bool>       ? value.is_boolean()
                    : std::is_same_v<T, uint64_t> ? value.is_number_unsigned() && value != 0
                                                  : value.is_string();
  if (!fits)
    throw Error("the plan's configuration has " + path + " = " + value.dump() + "; it is " + rule +
                "; compile the plan again");
  return value.get<T>();
}

/// Likewise of a section; an empty one where it is not written.
json sectionOf(const json &config, const char *name) {
  const json section = config.value(name, json::object());
  if (!section.is_object())
    throw Error("the plan's configuration has " + std::string(name) + " = " + section.dump() +
                "; it is an object such as {\"enabled\": true}; compile the plan again");
  return section;
}

} // namespace

Profile *Profiler::profileOf(const plan::proto::Plan &plan) {
  plan_ = &plan;
  const json config = json::parse(plan.config_json(), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object())
    return nullptr;
  constexpr const char *step = "the number of a step, 1 or more", *yes = "true or false";
  wallClock_ = valueOf(config, "wall_clock_breakdown", false, yes);
  stepsPerPrint_ = valueOf(config, "steps_per_print", uint64_t(0), "a number of steps, 1 or more");
  collectives_ = valueOf(sectionOf(config, "comms_logger"), "comms_logger.enabled", false, yes);
  const json flops = sectionOf(config, "flops_profiler");
  if (valueOf(flops, "flops_profiler.enabled", false, yes)) {
    flopsStep_ = valueOf(flops, "flops_profiler.profile_step", uint64_t(1), step);
    flopsFile_ = valueOf(flops, "flops_profiler.output_file", std::string(), "the name of a file");
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
  ++stepsSinceShown_.steps;
  stepsSinceShown_.seconds += report.seconds;
  ++steps_;
  lastStep_ = report.step;
  if (report.step == flopsStep_)
    showFlops(times, report);
}

void Profiler::evaluated(const EvaluationReport &report) noexcept {
  next_->evaluated(report);
  if (profile_)
    profile_->take(); // no part of the next step
}

void Profiler::saved(double seconds) noexcept {
  next_->saved(seconds);
  stepsSinceShown_.saveSeconds += seconds;
  if (wallClock_ && stepsPerPrint_ > 0 && stepsSinceShown_.steps > 0 && lastStep_ % stepsPerPrint_ == 0)
    showPhases();
}

void Profiler::finish() noexcept {
  if (flopsStep_ > 0 && !flopsShown_ && steps_ > 0)
    noted(("flops_profiler.profile_step is " + std::to_string(flopsStep_) + ", and the run was of steps " +
           std::to_string(lastStep_ - steps_ + 1) + " to " + std::to_string(lastStep_) + ": no table of FLOPs")
              .c_str());
  if (wallClock_ && stepsSinceShown_.steps > 0)
    showPhases();
  if (collectives_ && steps_ > 0)
    showCommunication();
}

void Profiler::showPhases() {
  for (const std::span<const CommandTime> rank : byRank(sinceShown_))
    shown((nameOf(*plan_, rank) + ", mean of " + std::to_string(stepsSinceShown_.steps) + " steps up to step " +
           std::to_string(lastStep_) + ":\n" + phaseTable(rank, stepsSinceShown_))
              .c_str());
  sinceShown_.clear();
  stepsSinceShown_ = {};
}

void Profiler::showCommunication() {
  bool any = false;
  for (const std::span<const CommandTime> rank : byRank(all_))
    if (const std::string table = communicationTable(*plan_, rank); !table.empty()) {
      any = true;
      shown(
          ("communication of " + nameOf(*plan_, rank) + " in " + std::to_string(steps_) + " steps:\n" + table).c_str());
    }
  if (!any)
    noted("comms_logger has nothing to show: this run communicates nothing");
}

void Profiler::showFlops(const std::vector<CommandTime> &times, const StepReport &report) {
  flopsShown_ = true;
  std::string text;
  for (const std::span<const CommandTime> rank : byRank(times))
    text += "kernels of " + nameOf(*plan_, rank) + " in step " + std::to_string(report.step) + ":\n" +
            flopsTable(*plan_, rank, report.seconds);
  if (flopsFile_.empty())
    return shown(text.c_str());
  std::ofstream file(flopsFile_);
  if (!(file << text << std::flush))
    noted(("flops_profiler.output_file " + flopsFile_ + " cannot be written; the run goes on").c_str());
}

} // namespace ds::runtime
