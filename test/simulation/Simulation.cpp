//===- Simulation.cpp - one seed: what is run, and what must come of it ---===//
#include "test/simulation/Simulation.h"

#include "core/DType.h"
#include "core/Error.h"
#include "kernels/KernelRegistry.h"
#include "runtime/comm/inprocess/InProcessTransport.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/session/LocalRanks.h"
#include "test/simulation/FaultyMover.h"
#include "test/simulation/Primitives.h"

#include <cstdio>
#include <cstring>
#include <deque>
#include <utility>

namespace ds::sim {
namespace {

using namespace std::chrono_literals;
using runtime::LocalRanks;

constexpr uint64_t maxSteps = 3;
constexpr uint64_t tickLimit = 2'000'000;                                        // some 40 times the longest run
constexpr std::chrono::milliseconds collectiveTimeout = 10min, patience = 11min; // ds-run's own
constexpr std::chrono::nanoseconds allowance = 5s;                               // far above what points take

/// What a run left: the outcome of each rank and, where nothing failed, the bytes of all variables and metrics.
struct Run {
  std::string error, told; ///< what execute returned, what the session heard
  std::vector<std::string> errorOfRank;
  std::string errorAfterwards; ///< of one more step, where there was an error
  std::vector<std::vector<std::byte>> states;
  int64_t tasksLeft = 0;
};

std::vector<std::byte> stateOf(const Case &plan, const LocalRanks &ranks) {
  std::vector<std::byte> state;
  for (uint32_t rank = 0; rank < plan.ranks; ++rank)
    for (const runtime::HeldPart &part : runtime::heldParts(plan.plan, rank)) {
      const auto bytes = part.count * uint64_t(byteSize(DType(plan.plan.variables(int(part.variable)).dtype())));
      state.resize(state.size() + bytes);
      ranks.find(rank)->read(part, 0, std::span(state).last(bytes));
    }
  if (const auto loss = ranks.first().metric(*ranks.first().program("step"), "loss")) {
    const auto *first = reinterpret_cast<const std::byte *>(&loss->number);
    state.insert(state.end(), first, first + sizeof loss->number);
  }
  return state;
}

/// The body of the simulated program.
void runPlan(const Case &plan, const Scenario &scenario, Faults &faults, Run &run) {
  runtime::InProcessTransport transport(plan.ranks, makeFaultyMover);
  transport.setTimeout(collectiveTimeout);
  std::deque<thread> stoppers;
  {
    LocalRanks ranks(
        plan.plan, transport, [](uint32_t) { return std::make_unique<runtime::CpuDevice>(); },
        kernels::cpuReferenceKernels(), {.threads = scenario.workers, .patience = patience},
        [&](const std::string &error) {
          Scheduler::current()->log("FAILED: %s", error.c_str());
          run.told = error;
          faults.release();
        });
    ranks.initialize(*plan.sources);
    const auto step = [&](uint64_t number) {
      Scheduler::current()->log("step %llu", static_cast<unsigned long long>(number));
      return ranks.execute("step", {.seed = 3,
                                    .step = number,
                                    .data = plan.data.get(),
                                    .firstSample = number * plan.plan.training().train_batch_size()});
    };
    for (int i = 0; i < scenario.stops; ++i)
      stoppers.emplace_back([&transport, &scenario, i] {
        for (uint64_t points = Scheduler::current()->random().below(scenario.stopsWithin); points > 0; --points)
          point();
        for (const char *time : {"first", "second"}) {
          Scheduler::current()->log("asks for the run to stop");
          transport.stop(Status::failure("stop %d was asked for the %s time", i, time));
        }
      });
    Status status;
    for (uint64_t number = 0; number < scenario.steps && status.ok(); ++number) {
      status = step(number);
      run.tasksLeft += tasksUnderWay;
      if (status.ok())
        run.states.push_back(stateOf(plan, ranks));
    }
    run.error = status.message();
    if (!status.ok())
      run.errorAfterwards = step(scenario.steps).message();
    for (uint32_t rank = 0; rank < plan.ranks; ++rank)
      run.errorOfRank.push_back(ranks.find(rank)->device().failure().message());
  }
  for (thread &stopper : stoppers)
    stopper.join();
}

/// Whether it is a watchdog's sentence that blames what was made to stall: the rank and, where its place is one of a
/// command, the command.
bool blames(const std::string &error, const Faults &faults) {
  const Fault &fault = *faults.taken();
  const bool within = fault.place == Place::Arrive || fault.place == Place::Follow || fault.place == Place::Move;
  const std::string name = "rank " + std::to_string(fault.rank), what = within ? "" : faults.sentence();
  const bool isOwn = error.starts_with(name + ": nothing has moved for ");
  for (const std::string &begin :
       {"; " + name + " stands still or is slower than --collective-timeout allows: its queue ",
        " s; " + name + "'s queue ", std::string(isOwn ? " s; queue " : "?")})
    if (const size_t at = error.find(begin); at != std::string::npos)
      return error.find(what, at + begin.size()) != std::string::npos;
  return false;
}

/// What of the invariant does not hold about a run that ended; empty: all does.
std::string judge(const Scenario &scenario, const Faults &faults, const Run &run,
                  const std::vector<std::vector<std::byte>> &reference) {
  if (run.tasksLeft != 0)
    return "a step was over while a command was still under way";
  for (size_t step = 0; step < run.states.size(); ++step)
    if (run.states[step] != reference[step])
      return "after step " + std::to_string(step + 1) + " variables or metrics have other bits than without faults";
  if (run.error.empty())
    return faults.taken() != nullptr ? "the run succeeded though a command was made to fail or to stall" : "";
  for (const std::string &own : run.errorOfRank)
    if (own != run.error)
      return "ranks ended with different errors: '" + run.error + "' and '" + own + "'";
  const bool late = scenario.stops > 0 && run.told.empty(); // who asked was about to tell it when all had ended
  if (run.told != run.error && !late)
    return "the session was told another error: '" + run.told + "'";
  if (run.errorAfterwards != run.error)
    return "another step after the failure ended with '" + run.errorAfterwards + "'";
  if (scenario.stops > 0 && run.error.ends_with("was asked for the first time"))
    return "";
  if (faults.taken() == nullptr)
    return "the run failed though nothing was made to fail";
  if (faults.taken()->kind == FaultKind::Fail)
    return run.error == faults.sentence() ? "" : "the error is not the one of the command that failed";
  return blames(run.error, faults) ? "" : "the error does not blame the command that stalled: '" + run.error + "'";
}

} // namespace

Simulation::Simulation() : cases_(makeCases()) {
  const std::string bug = std::exchange(plantedBug, ""); // what is right is known without it
  for (const Case &plan : cases_) {
    Reference &reference = references_.emplace_back();
    Scenario scenario;
    scenario.steps = maxSteps;
    Faults none({});
    Faults::current = &none;
    Run run;
    Scheduler scheduler(0, /*inOrder=*/true, /*log=*/false);
    const Outcome outcome = scheduler.run([&] { runPlan(plan, scenario, none, run); }, tickLimit);
    if (outcome.end != End::Done || !run.error.empty())
      throw Error("the reference run of " + plan.name + " does not end well: " + run.error + outcome.report);
    reference = {std::move(run.states), none.visits()};
  }
  Faults::current = nullptr;
  plantedBug = bug;
}

Fault Simulation::drawFault(Random &random, const Scenario &scenario, FaultKind kind) const {
  std::vector<std::pair<std::pair<Place, uint32_t>, uint64_t>> open;
  for (const auto &visit : references_[scenario.plan].visits)
    if (!(kind == FaultKind::Stall && isOnHost(visit.first.first)) &&     // whose watchdog would it be?
        !(kind == FaultKind::Fail && visit.first.first == Place::Submit)) // it returns nothing
      open.push_back(visit);
  const auto &[at, count] = open[random.below(open.size())];
  Fault fault{kind, at.first, at.second, random.below(count * scenario.steps / maxSteps), {}};
  if (kind == FaultKind::Delay) // 1 us to 67 s; all together stay below the timeouts
    fault.delay = std::chrono::microseconds(uint64_t(1) << random.below(27));
  return fault;
}

void Simulation::addFaults(Random &random, Scenario &scenario) const {
  const auto add = [&](FaultKind kind) { scenario.faults.push_back(drawFault(random, scenario, kind)); };
  for (uint64_t delays = random.oneIn(2) ? 0 : 1 + random.below(5); delays > 0; --delays)
    add(FaultKind::Delay);
  switch (random.below(6)) {
  case 0:
  case 1:
    add(FaultKind::Fail);
    break;
  case 2:
    add(FaultKind::Stall);
    break;
  case 3:
    scenario.stops = 1 + int(random.below(2));
    scenario.stopsWithin = uint64_t(1) << random.below(13);
    break;
  default:
    break;
  }
}

Scenario Simulation::scenario(uint64_t seed) const {
  Random random(seed);
  Scenario scenario;
  scenario.plan = random.below(cases_.size());
  scenario.steps = 1 + random.below(maxSteps);
  scenario.workers = random.oneIn(4) ? 2 : 1;
  addFaults(random, scenario);
  scenario.text = cases_[scenario.plan].name + ", " + std::to_string(scenario.steps) + " steps";
  for (const Fault &fault : scenario.faults) {
    constexpr const char *kinds[] = {"delay", "fail", "stall"};
    scenario.text += std::string("; ") + kinds[size_t(fault.kind)] + " rank " + std::to_string(fault.rank) + " at " +
                     name(fault.place) + " " + std::to_string(fault.occurrence);
  }
  if (scenario.stops > 0)
    scenario.text += "; asked to stop by " + std::to_string(scenario.stops) + " threads";
  return scenario;
}

Verdict Simulation::run(uint64_t seed, bool log) const {
  const Scenario chosen = scenario(seed);
  Faults faults(chosen.faults);
  Faults::current = &faults;
  tasksUnderWay = 0;
  Run run;
  Scheduler scheduler(seed, /*inOrder=*/false, log);
  Verdict verdict;
  verdict.scenario = chosen.text;
  verdict.outcome = scheduler.run([&] { runPlan(cases_[chosen.plan], chosen, faults, run); }, tickLimit);
  Faults::current = nullptr;
  verdict.error = run.error;
  if (verdict.outcome.end == End::Hang)
    verdict.broken = "nothing can run and no timer is pending";
  else if (verdict.outcome.end == End::TooManyTicks)
    verdict.broken = "the run has not ended within " + std::to_string(tickLimit) + " ticks";
  else
    verdict.broken = judge(chosen, faults, run, references_[chosen.plan].states);
  const bool stalled = faults.taken() != nullptr && faults.taken()->kind == FaultKind::Stall;
  verdict.stalled = stalled;
  const std::chrono::nanoseconds budget = allowance + faults.delayed() + (stalled ? 2 * patience : 0ms);
  if (verdict.broken.empty() && verdict.outcome.time > budget)
    verdict.broken = "the run took " + std::to_string(double(verdict.outcome.time.count()) * 1e-9) +
                     " s of simulated time, where " + std::to_string(double(budget.count()) * 1e-9) + " s would do";
  return verdict;
}

} // namespace ds::sim
