//===- Transfers.cpp - what a step copies between memories, and when -------===//
#include "compiler/report/Transfers.h"

#include "compiler/report/Facts.h"
#include "compiler/report/Table.h"
#include "compiler/report/movement/MovedBytes.h"
#include "compiler/report/movement/Transfer.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/CommandWork.h"
#include "runtime/plan/run/StepClock.h"
#include "runtime/plan/run/Tail.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::TimedCommand;
using plan::proto::Command;
using plan::proto::Link;
using plan::proto::Plan;
using plan::proto::Role;

std::string linkName(Transfer::Direction direction) {
  return direction == Transfer::Out || direction == Transfer::Back ? "device-host" : "host-nvme";
}

/// Of a plan that knows all links, or whose transfers are to take no time.
std::vector<TimedCommand> timeStepOver(const Plan &plan, const Role &role, bool transfersTakeTime) {
  return plan::timeStep(role, [&](const TimedCommand &timed) {
    if (const auto moved = transferOf(role, *timed.command)) {
      const Link *link = transfersTakeTime ? linkOf(plan, moved->direction) : nullptr;
      return link ? link->latency_seconds() + double(moved->bytes) / link->bytes_per_second() : 0;
    }
    return plan::secondsOf(plan, role, *timed.command);
  });
}

bool isCompute(const Role &role, const Command &command) {
  return role.queues(int(command.queue())).kind() == plan::proto::Queue::COMPUTE;
}

TimedTransfer timedTransfer(const Role &role, const TimedCommand &timed, Transfer moved) {
  return {.moved = std::move(moved),
          .microbatch = stepOf(role).calls(timed.call).microbatch(),
          .start = timed.start,
          .end = timed.end,
          .latestEnd = timed.latestEnd};
}

/// "1.031", of what must move.
std::string ratioText(const MovedBytes &moved) {
  if (moved.moved == 0)
    return "nothing moves";
  if (moved.least == 0)
    return "";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", double(moved.moved) / double(moved.least));
  return text.data();
}

} // namespace

const Link *linkOf(const plan::proto::Machine &machine, Transfer::Direction direction) {
  const auto &links = machine.links();
  const auto found = std::ranges::find(links, linkName(direction), &Link::between);
  return found == links.end() ? nullptr : &*found;
}

const Link *linkOf(const Plan &plan, Transfer::Direction direction) { return linkOf(plan.machine(), direction); }

std::vector<TimedCommand> timeStep(const Plan &plan, const Role &role) { return timeStepOver(plan, role, true); }

std::string unknownLink(const Plan &plan) {
  for (const Role &role : plan.roles()) {
    const TransferBytes moved = transferBytesPerStep(role);
    if (moved.out + moved.back > 0 && !linkOf(plan, Transfer::Out))
      return linkName(Transfer::Out);
    if (moved.written + moved.read > 0 && !linkOf(plan, Transfer::Read))
      return linkName(Transfer::Read);
  }
  return "";
}

std::optional<TransferTimes> transferTimes(const Plan &plan, const Role &role) {
  if (!unknownLink(plan).empty() || transferBytesPerStep(role).sum() == 0)
    return std::nullopt;
  TransferTimes times;
  const std::vector<TimedCommand> commands = timeStep(plan, role);
  for (const TimedCommand &timed : commands) {
    times.compute += isCompute(role, *timed.command) ? timed.end - timed.start : 0;
    if (auto moved = transferOf(role, *timed.command)) {
      times.transfers.push_back(timedTransfer(role, timed, *std::move(moved)));
      times.alone += timed.end - timed.start;
    }
  }
  times.step = plan::lastEnd(commands);
  times.stepWithout = plan::lastEnd(timeStepOver(plan, role, false));
  return times;
}

double computeSeconds(const Plan &plan, const Role &role) {
  std::vector<double> routines;
  for (const plan::proto::Routine &routine : role.routines()) {
    double sum = 0;
    for (const Command &command : routine.commands())
      sum += isCompute(role, command) ? plan::secondsOf(plan, role, command) : 0;
    routines.push_back(sum);
  }
  double sum = 0;
  for (const plan::proto::Call &call : plan::callsBeforeTail(stepOf(role)))
    sum += routines[call.routine()];
  return sum;
}

double leastExposed(const Plan &plan, const Role &role, const MovedBytes &moved) {
  const double oneWay = double(moved.least) / 2 / linkOf(plan, Transfer::Out)->bytes_per_second();
  return std::max(0.0, oneWay - plan::lastEnd(timeStepOver(plan, role, false)));
}

Table exposureTable(const Plan &plan) {
  Table table({"rank", "transfers", "alone", "exposed", "hidden", "compute", "step", "step without them"},
              {false, true, true, true, true, true, true, true});
  for (const Role &role : plan.roles())
    if (const auto times = transferTimes(plan, role))
      table.add({rankRanges(role), grouped(times->transfers.size()), secondsText(times->alone),
                 secondsText(times->exposed()), percentText(times->hidden()), secondsText(times->compute),
                 secondsText(times->step), secondsText(times->stepWithout)});
  return table;
}

Table movementTable(const Plan &plan) {
  Table table({"rank", "device memory", "moved", "least", "moved / least", "exposed", "least"},
              {false, true, true, true, true, true, true});
  const bool knowsLink = linkOf(plan, Transfer::Out) != nullptr;
  for (const Role &role : plan.roles())
    if (const auto moved = movedBytes(plan, role)) {
      const auto times = transferTimes(plan, role);
      table.add({rankRanges(role), grouped(moved->room), grouped(moved->moved), grouped(moved->least),
                 ratioText(*moved), times ? secondsText(times->exposed()) : "",
                 knowsLink ? secondsText(leastExposed(plan, role, *moved)) : ""});
    }
  return table;
}

Table transferTable(const TransferTimes &times) {
  Table table({"tensor", "", "micro-batch", "bytes", "starts", "ends", "must end by", "slack", "GB/s"},
              {false, false, true, true, true, true, true, true, true});
  static constexpr std::array ways{"to the host", "to the device", "to NVMe", "from NVMe"};
  for (const TimedTransfer &one : times.transfers) {
    std::array<char, 32> bandwidth{};
    std::snprintf(bandwidth.data(), bandwidth.size(), "%.2f", one.bytesPerSecond() * 1e-9);
    table.add({one.moved.name, ways[one.moved.direction], grouped(one.microbatch), grouped(one.moved.bytes),
               secondsText(one.start), secondsText(one.end), secondsText(one.latestEnd),
               secondsText(one.latestEnd - one.end), bandwidth.data()});
  }
  return table;
}

} // namespace ds::report
