//===- PerfettoReport.cpp - a step on the simulated clock, as a timeline ---===//
//
// Chrome's trace format, which chrome://tracing and ui.perfetto.dev read: a process a role, a thread a queue, an event
// a command. Times are microseconds from the start of the step.
//
//===----------------------------------------------------------------------===//
#include "compiler/report/Facts.h"
#include "compiler/report/Formats.h"
#include "compiler/report/Transfers.h"
#include "core/Error.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/CommandName.h"
#include "runtime/plan/run/StepClock.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace ds::report {
namespace {

using json = nlohmann::ordered_json;
using plan::proto::Plan;
using plan::proto::Role;

/// One line.
void add(std::string &events, const json &event) {
  events += (events.empty() ? "" : ",\n") + event.dump(-1, ' ', false, json::error_handler_t::replace);
}

json nameOf(const char *what, int role, int queue, const std::string &name) {
  return {{"ph", "M"}, {"name", what}, {"pid", role}, {"tid", queue}, {"args", {{"name", name}}}};
}

json eventOf(const Plan &plan, int role, const plan::proto::Program &step, const plan::TimedCommand &timed) {
  const plan::proto::Call &call = step.calls(timed.call);
  json event = {{"ph", "X"},
                {"name", plan::commandName(plan, plan.roles(role), call.routine(), uint32_t(timed.index))},
                {"pid", role},
                {"tid", timed.command->queue()},
                {"ts", timed.start * 1e6},
                {"dur", (timed.end - timed.start) * 1e6},
                {"args",
                 {{"call", timed.call},
                  {"command", timed.index},
                  {"microbatch", call.microbatch()},
                  {"must_end_by", timed.latestEnd * 1e6}}}};
  if (const auto moved = transferOf(plan.roles(role), *timed.command)) {
    event["name"] = moved->name;
    event["args"]["bytes"] = moved->bytes;
  }
  return event;
}

void addRole(std::string &events, const Plan &plan, int number) {
  const Role &role = plan.roles(number);
  add(events, nameOf("process_name", number, 0, "rank " + rankRanges(role)));
  for (int queue = 0; queue < role.queues_size(); ++queue)
    add(events, nameOf("thread_name", number, queue, role.queues(queue).name()));
  for (const plan::TimedCommand &timed : timeStep(plan, role))
    add(events, eventOf(plan, number, stepOf(role), timed));
}

} // namespace

std::string perfettoReport(const Plan &plan) {
  std::string events;
  if (const std::string link = unknownLink(plan); !link.empty())
    throw Error("--format perfetto: the plan copies between memories, but machine " + plan.machine().name() +
                    " has no link " + link + ", so nobody knows for how long",
                "compile it with a --machine that has one");
  for (int i = 0; i < plan.roles_size(); ++i)
    addRole(events, plan, i);
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + events + "\n]}\n";
}

} // namespace ds::report
