//===- TryRanks.cpp - would a model fit on so many ranks ------------------===//
#include "compiler/driver/TryRanks.h"

#include "compiler/config/Config.h"
#include "compiler/driver/Fault.h"
#include "compiler/report/Advice.h"
#include "core/Error.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace ds;
using namespace ds::driver;

static std::vector<plan::proto::ConfigAnswer> answersOf(const std::vector<config::KeyAnswer> &answers) {
  std::vector<plan::proto::ConfigAnswer> result;
  for (const config::KeyAnswer &answer : answers) {
    plan::proto::ConfigAnswer &line = result.emplace_back();
    line.set_path(answer.path);
    line.set_value_json(answer.valueJson);
    line.set_status(answer.status);
    line.set_note(answer.note);
  }
  return result;
}

namespace {

/// The settings of a line to try that has nothing else: "--set a=1 --set b=2".
std::vector<std::string> settingsOf(const std::string &tryLine) {
  std::vector<std::string> settings;
  std::istringstream words(tryLine);
  for (std::string flag, set; words >> flag; settings.push_back(set))
    if (flag != "--set" || !(words >> set))
      return {};
  return settings;
}

/// Changes a refused request to what is left of it: leaves out the keys that were rejected, or takes the settings that
/// the refusal names, whichever is to come first and is new. Returns whether either is.
bool changeRefused(CompileRequest &request, report::FitCase &one, const Error &error, bool settingsFirst) {
  bool changed = false;
  const auto add = [&](std::vector<std::string> &changes, const std::string &change, const std::string &set) {
    if (std::ranges::find(changes, change) != changes.end())
      return;
    changes.push_back(change);
    request.overrides.sets.push_back(set);
    changed = true;
  };
  for (const bool takesSettings : {settingsFirst, !settingsFirst}) {
    const auto *refusal = dynamic_cast<const config::ConfigError *>(&error);
    if (takesSettings)
      for (const std::string &set : settingsOf(error.tryLine))
        add(one.with, set, set);
    else if (refusal != nullptr)
      for (const config::KeyAnswer &answer : refusal->answers)
        if (answer.status == "rejected")
          add(one.without, answer.path, answer.path + "=null");
    if (changed)
      break;
  }
  return changed;
}

/// Plans a request, or what is left of it, with the first refusal as the answer.
void planWhatIsLeft(CompileRequest request, report::FitCase &one, bool settingsFirst) {
  constexpr int mostChanges = 4; // a refusal may hide another
  one.without.clear();
  one.with.clear();
  for (int changes = 0;; ++changes) {
    try {
      one.plan = compile(request).plan;
      std::erase_if(one.without, [&](const std::string &key) {
        return std::ranges::any_of(one.with, [&](const std::string &set) { return set.starts_with(key + "="); });
      });
      return;
    } catch (const CompilerFault &) { // says nothing about what fits
      throw;
    } catch (const Error &error) {
      if (one.refusal.empty()) {
        one.refusal = error.what();
        one.tryLine = error.tryLine;
        if (const auto *refusal = dynamic_cast<const config::ConfigError *>(&error)) {
          one.details = refusal->details;
          one.config = answersOf(refusal->answers);
        }
      }
      if (changes == mostChanges || !changeRefused(request, one, error, settingsFirst))
        return;
    }
  }
}

report::FitCase tryOnce(CompileRequest request, int64_t ranks) {
  request.emit = Emit::PlanFile;
  request.overrides.ranks = ranks;
  report::FitCase one;
  one.ranks = uint64_t(ranks);
  planWhatIsLeft(request, one, /*settingsFirst=*/false);
  if (!one.plan && !(one.without.empty() && one.with.empty())) // there was something to change
    planWhatIsLeft(request, one, /*settingsFirst=*/true);
  if (one.refusal.empty())
    one.config.assign(one.plan->config().begin(), one.plan->config().end());
  return one;
}

/// Adds a setting to others, or puts it in the place of the one with its key. Returns whether it was not among them.
bool putSetting(std::vector<std::string> &settings, const std::string &setting) {
  if (setting.empty() || std::ranges::find(settings, setting) != settings.end())
    return false;
  std::erase_if(settings,
                [&](const std::string &other) { return other.starts_with(setting.substr(0, setting.find('=') + 1)); });
  settings.push_back(setting);
  return true;
}

/// Plans a request with further settings again and again, to find ranks that fit.
class Search {
public:
  Search(CompileRequest request, const plan::proto::Plan &lacking)
      : request_(std::move(request)), searches_(report::isRecomputeAuto(lacking)) {
    request_.emit = Emit::PlanFile;
    request_.warn = [](const std::string &) {}; // the cases have said it
  }

  /// Of counts of ranks from `first` on; where `takesSettings`, with those that would help. Nothing where the first
  /// cannot be planned. Stops where twice as many and so on would not do: needs shrink by half as much each time.
  std::optional<report::Trial> find(uint64_t first, bool takesSettings) const {
    constexpr uint64_t mostRanks = 1024;
    report::Trial trial{.first = first};
    std::optional<uint64_t> before; // bytes that half as many lack
    for (uint64_t ranks = first; ranks <= mostRanks;) {
      const std::optional<plan::proto::Plan> plan = planFor(ranks, trial.sets);
      if (!plan)
        break;
      trial.most = ranks;
      const uint64_t lack = report::lackingBytes(*plan);
      if (lack == 0) {
        trial.ranks = ranks;
        break;
      }
      const bool stops = before && 2 * lack > *before;
      if (takesSettings && putSetting(trial.sets, stops ? report::mostSharing : report::settingThatHelps(*plan))) {
        before.reset();
        ranks = first;
        continue;
      }
      if (stops)
        break;
      before = lack;
      ranks *= 2;
    }
    return trial.most == 0 || (takesSettings && trial.sets.empty()) ? std::nullopt : std::optional(trial);
  }

private:
  std::optional<plan::proto::Plan> planFor(uint64_t ranks, const std::vector<std::string> &sets) const {
    CompileRequest one = request_;
    one.overrides.ranks = int64_t(ranks);
    one.overrides.sets.insert(one.overrides.sets.end(), sets.begin(), sets.end());
    if (searches_) // what fits with all computed again fits with as little as has to be, which takes long to find
      one.overrides.sets.emplace_back("deepstatic.recompute=full");
    try {
      return compile(one).plan;
    } catch (const CompilerFault &) {
      throw;
    } catch (const Error &) {
      return std::nullopt;
    }
  }

  CompileRequest request_;
  const bool searches_;
};

} // namespace

std::vector<report::FitCase> ds::driver::tryRanks(const CompileRequest &request, std::span<const int64_t> ranks) {
  requireReadable(request);
  std::vector<report::FitCase> cases;
  for (int64_t count : ranks)
    cases.push_back(tryOnce(request, count));
  return cases;
}

std::vector<report::Trial> ds::driver::tryFurther(const CompileRequest &request,
                                                  std::span<const report::FitCase> cases) {
  const auto lacks = [](const report::FitCase &one) { return verdictOf(one) == report::Verdict::DoesNotFit; };
  if (!std::ranges::all_of(cases, lacks))
    return {};
  const auto [fewest, most] = std::ranges::minmax_element(cases, {}, &report::FitCase::ranks);
  Search search(request, *fewest->plan);
  std::vector<report::Trial> trials;
  if (const std::optional<report::Trial> more = search.find(2 * most->ranks, false))
    trials.push_back(*more);
  if (const std::optional<report::Trial> other = search.find(fewest->ranks, true))
    if (trials.empty() || trials[0].ranks == 0 || (other->ranks > 0 && other->ranks < trials[0].ranks))
      trials.push_back(*other);
  return trials;
}
