//===- FitReport.cpp - what `ds-opt check` prints -------------------------===//
//
// {"format": 1, "model", "verdict": "fits" | "does_not_fit" | "rejected" (the worst of all),
//  "bytes": what they are exact for,
//  "trials": where nothing fits: [{"set": further settings, "first", "most": counts of ranks, each twice the one
//    before, "ranks": the fewest of them that fit, null where none do}],
//  "checks": [{"ranks", "verdict", "reason" (empty where it fits), "details": further reasons,
//    "try": flags to add, or empty,
//    "otherwise": of a rejected case that has a plan without what was rejected, which "memory" is then of:
//      {"without": keys left out, "with": settings instead, "verdict"},
//    "machine": {"name", "device"},
//    "memory": [{"role", "ranks": [first, last] pairs, "space",
//        "needed_bytes"  "arena_bytes" and "reserve_bytes", what lives outside the arenas,
//        "room_bytes"    what the machine has; null where nothing is known of it,
//        "fits",
//        "phases": {"init" | "load" | "step" | "eval" | "save": {"live_bytes", "fits"}},
//        "holds": {category: bytes alive when most are}}],
//    "movement": [{"role", and what JsonReport.cpp says}], where anything moves or would have to,
//    "wire_bytes_per_step"   what rank 0 sends,
//    "recompute": {"layers", "layers_again", "share_of_flops": of matrix products done again, 0.19 for 19 % more},
//    "config": [{"path", "value", "status", "note"}]}]}
//
//===----------------------------------------------------------------------===//
#include "compiler/report/Advice.h"
#include "compiler/report/Facts.h"
#include "compiler/report/Fit.h"
#include "compiler/report/Formats.h"
#include "compiler/report/PeakMemory.h"
#include "compiler/report/Table.h"
#include "compiler/report/Transfers.h"
#include "compiler/report/WireBytes.h"
#include "compiler/report/movement/MovedBytes.h"
#include "core/Error.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/Flops.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using json = nlohmann::ordered_json;
using plan::proto::Buffer;
using plan::proto::ConfigAnswer;
using plan::proto::Plan;

constexpr const char *exactness =
    "exact for ds-run: the arenas that it allocates; what lives outside of them is the machine's reserve";

json memoryJson(const Plan &plan, const FitSpace &space) {
  const SpaceMemory memory = measure(*space.role, space.space);
  const uint64_t reserve = space.needed - memory.arenaBytes;
  json phases, holds;
  for (const Phase &phase : phasesOf(plan, *space.role, memory))
    phases[phase.name] = {{"live_bytes", phase.liveBytes},
                          {"fits", space.room == 0 || phase.liveBytes + reserve <= space.room}};
  for (int category = Buffer::WEIGHTS; category <= Buffer::CONSTANTS; ++category)
    holds[std::string(categoryName(Buffer::Category(category)))] = memory.atPeak[size_t(category)];
  json ranks = json::array();
  for (int k = 0; k + 1 < space.role->ranks_size(); k += 2)
    ranks.push_back({space.role->ranks(k), space.role->ranks(k + 1)});
  return {{"role", space.role->name()},
          {"ranks", ranks},
          {"space", space.space},
          {"needed_bytes", space.needed},
          {"arena_bytes", memory.arenaBytes},
          {"reserve_bytes", reserve},
          {"room_bytes", space.room == 0 ? json(nullptr) : json(space.room)},
          {"fits", space.fits()},
          {"phases", phases},
          {"holds", holds}};
}

/// Of a rank of the role that sends most.
uint64_t maxWireBytes(const plan::proto::Plan &plan) {
  uint64_t most = 0;
  for (const plan::proto::Role &role : plan.roles())
    most = std::max(most, wireBytesPerStep(plan, role, role.ranks(0)).sum());
  return most;
}

json recomputeJson(const Plan &plan) {
  uint64_t flops = 0, again = 0;
  for (const plan::proto::Role &role : plan.roles()) {
    flops += plan::matmulFlopsPerStep(plan, role);
    again += plan::recomputeFlopsPerStep(plan, role);
  }
  return {{"layers", plan.recompute().layers()},
          {"layers_again", plan.recompute().layers_again()},
          {"share_of_flops", flops == 0 ? 0.0 : double(again) / double(flops)}};
}

json caseJson(const FitCase &one) {
  json result = {{"ranks", one.ranks},
                 {"verdict", name(verdictOf(one))},
                 {"reason", reasonOf(one)},
                 {"details", one.details},
                 {"try", one.tryLine}};
  if (!otherwiseOf(one).empty())
    result["otherwise"] = {{"without", one.without},
                           {"with", one.with},
                           {"verdict", name(shortageOf(*one.plan).empty() ? Verdict::Fits : Verdict::DoesNotFit)}};
  if (one.plan) {
    result["machine"] = {{"name", one.plan->machine().name()}, {"device", one.plan->machine().device()}};
    result["memory"] = json::array();
    for (const FitSpace &space : fitSpaces(*one.plan))
      result["memory"].push_back(memoryJson(*one.plan, space));
    for (const plan::proto::Role &role : one.plan->roles())
      if (const auto moved = movedBytes(*one.plan, role)) {
        json line = movementJson(*one.plan, role, *moved);
        line["role"] = role.name();
        result["movement"].push_back(line);
      }
    result["wire_bytes_per_step"] = maxWireBytes(*one.plan);
    result["recompute"] = recomputeJson(*one.plan);
  }
  result["config"] = json::array();
  for (const ConfigAnswer &answer : one.config)
    result["config"].push_back(answerJson(answer));
  return result;
}

//===-- text --------------------------------------------------------------------===//

/// Whether any space has bytes of the category when most are alive.
bool holds(const FitCase &one, int category) {
  return one.plan && std::ranges::any_of(fitSpaces(*one.plan), [&](const FitSpace &space) {
           return measure(*space.role, space.space).atPeak[size_t(category)] > 0;
         });
}

/// One line a count of ranks, role and space.
void printCases(std::string &page, std::span<const FitCase> cases) {
  std::vector<std::string> head = {"ranks", "verdict", "role", "space", "needed",
                                   "room",  "init",    "step", "eval",  "recompute"};
  std::vector<bool> right = {true, false, false, false, true, true, true, true, true, true};
  std::vector<Buffer::Category> shown;
  for (int category = Buffer::WEIGHTS; category <= Buffer::CONSTANTS; ++category)
    if (std::ranges::any_of(cases, [&](const FitCase &one) { return holds(one, category); }))
      shown.push_back(Buffer::Category(category));
  for (Buffer::Category category : shown) {
    head.emplace_back(categoryName(category));
    right.push_back(true);
  }
  Table table(head, right);
  for (const FitCase &one : cases) {
    if (!one.plan)
      table.add({grouped(one.ranks), std::string(name(Verdict::Rejected))});
    const std::string refused = one.refusal.empty() ? "" : "rejected, else ";
    for (const FitSpace &space : one.plan ? fitSpaces(*one.plan) : std::vector<FitSpace>()) {
      const SpaceMemory memory = measure(*space.role, space.space);
      std::vector<std::string> row = {grouped(one.ranks),
                                      refused + (space.fits() ? "fits" : "does not fit"),
                                      space.role->name(),
                                      std::string(space.space),
                                      bytesText(space.needed),
                                      space.room == 0 ? "unknown" : bytesText(space.room),
                                      bytesText(memory.residentBytes),
                                      bytesText(memory.programPeak(*space.role, "step")),
                                      bytesText(memory.programPeak(*space.role, "evaluate")),
                                      recomputeShare(*one.plan)};
      for (Buffer::Category category : shown)
        row.push_back(bytesText(memory.atPeak[size_t(category)]));
      table.add(std::move(row));
    }
  }
  table.print(page);
}

bool sameAnswers(const FitCase &a, const FitCase &b) {
  const auto text = [](const FitCase &one) {
    std::string all;
    for (const ConfigAnswer &answer : one.config)
      all += answer.SerializeAsString();
    return all;
  };
  return text(a) == text(b);
}

void printConfig(std::string &page, std::span<const FitCase> cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    if (i > 0 && sameAnswers(cases[i], cases[i - 1]))
      continue;
    page += "\nconfiguration, from " + plural(cases[i].ranks, "rank") +
            " on: " + plural(cases[i].config.size(), "key") + " written\n";
    Table table({"key", "value", "answer"}, {});
    for (const ConfigAnswer &answer : cases[i].config)
      table.addWithNote({answer.path(), answer.value_json(), answer.status()}, answer.note());
    table.print(page);
  }
}

/// What is said of one count of ranks or of several: "8, 64 ranks".
class Said {
public:
  void add(const std::string &text, uint64_t ranks) {
    const auto known = std::ranges::find(lines_, text, &Line::first);
    if (known == lines_.end())
      lines_.emplace_back(text, grouped(ranks));
    else
      known->second += ", " + grouped(ranks);
  }
  void print(std::string &page, const std::string &before, const std::string &between) const {
    for (const auto &[text, ranks] : lines_)
      page += "\n" + before + ranks + (ranks == "1" ? " rank" : " ranks") + between + text + "\n";
  }

private:
  using Line = std::pair<std::string, std::string>; // text, ranks
  std::vector<Line> lines_;
};

/// Why cases do not fit, and what would help, once for all of which it is true.
void printShortages(std::string &page, std::span<const FitCase> cases) {
  Said reasons, others, remedies;
  for (const FitCase &one : cases) {
    if (verdictOf(one) == Verdict::Fits)
      continue;
    std::string reason = lackOf(one);
    for (const std::string &detail : one.details)
      reason += "\n  also: " + detail;
    if (!one.tryLine.empty())
      reason += "\n  try: " + one.tryLine;
    reasons.add(reason, one.ranks);
    if (const std::string otherwise = otherwiseOf(one); !otherwise.empty())
      others.add(otherwise, one.ranks);
    if (const std::string remedy = remedyOf(one); !remedy.empty())
      remedies.add(remedy, one.ranks);
  }
  reasons.print(page, "", ": ");
  others.print(page, "", " ");
  remedies.print(page, "on ", " ");
}

/// "tried: 64 ranks would do with --set zero_optimization.stage=3"
void printTrials(std::string &page, std::span<const Trial> trials) {
  for (const Trial &trial : trials) {
    const std::string first = trial.first == trial.most ? "" : grouped(trial.first) + " to ";
    page += "\ntried: " +
            (trial.ranks > 0 ? plural(trial.ranks, "rank") + " would do "
                             : first + plural(trial.most, "rank") + " would not do ") +
            (trial.sets.empty() ? "as it is written" : "with");
    for (const std::string &set : trial.sets)
      page += " --set " + set;
    page += "\n";
  }
}

std::string fitText(const std::string &model, std::span<const FitCase> cases, std::span<const Trial> trials) {
  std::string page = model + ": " + std::string(name(verdictOf(cases))) + "\n";
  printCases(page, cases);
  page += "  needed: arenas and reserve of one rank. init, step, eval (load and save are as init): most live bytes. "
          "The other columns: live bytes at the peak, by category.\n"
          "  recompute: matrix products of a step done again, so that less memory is needed; with \"auto\" as few as "
          "fit the room.\n";
  page.append("  Bytes are ").append(exactness).append(".\n");
  for (const FitCase &one : cases)
    if (const Table moved = one.plan ? movementTable(*one.plan) : Table({}, {}); moved.rows().size() > 1) {
      page += "\n" + plural(one.ranks, "rank") + ": " + std::string(movementTitle) + "\n";
      moved.print(page);
    }
  printShortages(page, cases);
  printTrials(page, trials);
  printConfig(page, cases);
  return page;
}

} // namespace

std::string fitReport(const std::string &model, std::span<const FitCase> cases, std::span<const Trial> trials,
                      Format format) {
  if (format == Format::Text)
    return fitText(model, cases, trials);
  if (format != Format::Json)
    throw Error("--format: check writes text and json", "--format json");
  json result = {{"format", 1},        {"model", model},          {"verdict", name(verdictOf(cases))},
                 {"bytes", exactness}, {"trials", json::array()}, {"checks", json::array()}};
  for (const Trial &trial : trials)
    result["trials"].push_back({{"set", trial.sets},
                                {"first", trial.first},
                                {"most", trial.most},
                                {"ranks", trial.ranks == 0 ? json(nullptr) : json(trial.ranks)}});
  for (const FitCase &one : cases)
    result["checks"].push_back(caseJson(one));
  return result.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace ds::report
