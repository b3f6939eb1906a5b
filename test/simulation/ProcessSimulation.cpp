//===- ProcessSimulation.cpp - one seed of processes that talk by TCP -----===//
#include "test/simulation/ProcessSimulation.h"

#include <algorithm>
#include <string>

namespace ds::sim {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t tickLimit = 2'000'000;

bool isHarmless(Trouble trouble) {
  return trouble == Trouble::None || trouble == Trouble::Pauses || trouble == Trouble::Replay;
}

/// Whether an error says that the rank is gone or stands still.
bool names(const std::string &error, uint32_t rank) {
  const std::string number = std::to_string(rank), name = "rank " + number;
  if (error.starts_with(name + " has ended, or lost its connection") ||
      error.find(" for " + name + " to send ") != std::string::npos)
    return true;
  if (rank == 0 && error.find("rank 0 at ") != std::string::npos && error.find("lost its conn") == std::string::npos)
    return true;
  const size_t begin = error.find("arrived, ranks "), end = error.find(" are missing");
  return begin != std::string::npos && end != std::string::npos &&
         (", " + error.substr(begin + 15, end - begin - 15) + ",").find(", " + number + ",") != std::string::npos;
}

/// What does not hold about the end of one rank; empty: all does.
std::string judgeRank(const ProcessScenario &scenario, const ProcessRun &run, uint32_t rank) {
  const std::string &error = run.ranks[rank].error;
  const std::string who = "rank " + std::to_string(rank);
  if (!run.hit || isHarmless(scenario.trouble))
    return error.empty() ? "" : who + " ended with an error though nothing was wrong: '" + error + "'";
  if (error.empty())
    return run.hadFinished ? "" : who + " ended well though rank " + std::to_string(scenario.rank) + " was in trouble";
  if (scenario.trouble == Trouble::Fails)
    return error == plannedFailure ? "" : who + " did not end with the failure's sentence: '" + error + "'";
  if (!run.hadJoined && names(error, 0)) // the others have ended, rank 0 among them, before this one came
    return "";
  return names(error, rank == scenario.rank ? 0 : scenario.rank)
             ? ""
             : who + " ended with an error that does not name who was in trouble: '" + error + "'";
}

std::string judge(const ProcessScenario &scenario, const ProcessRun &run) {
  const bool gone = run.hit && (scenario.trouble == Trouble::Dies || scenario.trouble == Trouble::Dies2 ||
                                scenario.trouble == Trouble::Stands);
  for (uint32_t rank = 0; rank < scenario.ranks; ++rank) {
    if (!run.ranks[rank].wrong.empty())
      return run.ranks[rank].wrong;
    if (const std::string broken = judgeRank(scenario, run, rank); !broken.empty() && !(gone && rank == scenario.rank))
      return broken;
  }
  return "";
}

/// When every process has ended, at the latest. What is told takes no time to speak of; what is only missed, as long
/// as processes wait for each other, and 6 s that they grant beside.
Scheduler::Time budget(const ProcessScenario &scenario, const ProcessRun &run) {
  Scheduler::Time time = run.hit ? run.hitAt + 5s : 5s;
  for (const ProcessScenario::Delay &delay : scenario.delays)
    time += delay.duration;
  time += *std::ranges::max_element(scenario.starts) + scenario.duration;
  const bool told = scenario.trouble != Trouble::Stands && scenario.trouble != Trouble::Silence && run.hadJoined;
  return run.hit && !isHarmless(scenario.trouble) && !told ? time + processTimeout + 6s : time;
}

Exchange drawExchange(Random &random, uint32_t ranks) {
  Exchange exchange{.kind = Exchange::Kind(random.below(3))};
  exchange.flags = random.oneIn(2) ? 0 : uint32_t(random.below(uint64_t(1) << ranks));
  const auto other = uint32_t(random.below(ranks));
  (random.oneIn(2) ? exchange.from : exchange.to) = other;
  exchange.bytes = random.below(200);
  return exchange;
}

} // namespace

ProcessScenario ProcessSimulation::scenario(uint64_t seed) const {
  Random random(seed);
  const auto milliseconds = [&](uint64_t most) { return std::chrono::milliseconds(random.below(most)); };
  ProcessScenario scenario;
  scenario.ranks = 1 + uint32_t(random.below(5));
  for (uint64_t i = 0, count = 1 + random.below(10); i < count; ++i)
    scenario.script.push_back(drawExchange(random, scenario.ranks));
  for (uint32_t rank = 0; rank < scenario.ranks; ++rank)
    scenario.starts.push_back(milliseconds(random.oneIn(2) ? 2 : 1000));
  for (uint64_t delays = random.below(4); delays > 0; --delays)
    scenario.delays.push_back({uint32_t(random.below(scenario.ranks)), random.below(300), milliseconds(500)});
  scenario.trouble = Trouble(random.below(9));
  scenario.rank = uint32_t(random.below(scenario.ranks));
  const bool between = scenario.trouble >= Trouble::Resets; // it and rank 0
  if (between && scenario.rank == 0)
    scenario.trouble = Trouble::None;
  if (scenario.trouble == Trouble::Fails)
    scenario.at = random.below(scenario.script.size());
  else if (scenario.trouble == Trouble::Replay && random.oneIn(2)) // while ranks are still admitted
    scenario.at = random.below(24);
  else
    scenario.at = random.below(uint64_t(1) << (3 + random.below(7)));
  if (scenario.trouble == Trouble::Pauses || scenario.trouble == Trouble::Replay)
    scenario.duration = milliseconds(2000);
  scenario.text = std::to_string(scenario.ranks) + " processes, " + std::to_string(scenario.script.size()) +
                  " exchanges, " + std::to_string(scenario.delays.size()) + " delays";
  if (scenario.trouble != Trouble::None)
    scenario.text += "; rank " + std::to_string(scenario.rank) + " at " + std::to_string(scenario.at) + ": " +
                     name(scenario.trouble);
  return scenario;
}

Verdict ProcessSimulation::run(uint64_t seed, bool log) const {
  const ProcessScenario chosen = scenario(seed);
  ProcessRun run;
  Scheduler scheduler(seed, /*inOrder=*/false, log);
  Verdict verdict;
  verdict.scenario = chosen.text;
  verdict.outcome = scheduler.run([&] { runProcesses(chosen, run); }, tickLimit);
  for (const ProcessRun::Rank &rank : run.ranks)
    if (verdict.error.empty())
      verdict.error = rank.error;
  if (verdict.outcome.end == End::Hang)
    verdict.broken = "nothing can run and no timer is pending";
  else if (verdict.outcome.end == End::TooManyTicks)
    verdict.broken = "the run has not ended within " + std::to_string(tickLimit) + " ticks";
  else
    verdict.broken = judge(chosen, run);
  if (verdict.broken.empty() && verdict.outcome.time > budget(chosen, run))
    verdict.broken = "the run took " + std::to_string(double(verdict.outcome.time.count()) * 1e-9) +
                     " s of simulated time, where " + std::to_string(double(budget(chosen, run).count()) * 1e-9) +
                     " s would do";
  verdict.stalled = run.hit && chosen.trouble == Trouble::Stands;
  return verdict;
}

} // namespace ds::sim
