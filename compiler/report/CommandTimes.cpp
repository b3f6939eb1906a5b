//===- CommandTimes.cpp - what commands do, and how long the cost model says ===//
#include "compiler/report/CommandTimes.h"

#include "compiler/report/Facts.h"
#include "core/CostModel.h"
#include "core/DType.h"
#include "runtime/plan/Flops.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Command;
using plan::proto::Operand;
using plan::proto::Plan;
using plan::proto::Role;

template <typename Operands> double sumOfBytes(const Operands &operands) {
  double bytes = 0;
  for (const Operand &operand : operands)
    bytes += operand.access() == Operand::SCRATCH ? 0 : double(bytesOf(operand));
  return bytes;
}

double bytesTouched(const Command &command) {
  switch (command.kind_case()) {
  case Command::kKernel:
    return sumOfBytes(command.kernel().operands());
  case Command::kFill:
    return double(bytesOf(command.fill().target()));
  case Command::kCopy:
    return double(bytesOf(command.copy().source()) + bytesOf(command.copy().target()));
  case Command::kFeed:
    return double(bytesOf(command.feed().target()));
  case Command::kSend:
    return sumOfBytes(command.send().sources());
  case Command::kReceive:
    return sumOfBytes(command.receive().targets());
  case Command::kCollective: {
    double bytes = 0;
    for (const plan::proto::CollectivePart &part : command.collective().parts())
      bytes += double(bytesOf(part.source()) + bytesOf(part.target()));
    return bytes;
  }
  case Command::KIND_NOT_SET:
    break;
  }
  return 0;
}

Work::Kind kindOf(const plan::proto::KernelCommand &kernel) {
  const auto isTf32 = [](const plan::proto::Attribute &attribute) {
    return attribute.name() == "tf32" && attribute.integer() != 0;
  };
  const unsigned bits = kernel.operands_size() == 0 ? 32 : unsigned(8 * byteSize(DType(kernel.operands(0).dtype())));
  return workKind(kernel.kernel().starts_with("attention"), bits, std::ranges::any_of(kernel.attributes(), isTf32));
}

std::string nameOf(const Command &command) {
  switch (command.kind_case()) {
  case Command::kKernel:
    return command.kernel().kernel();
  case Command::kFill:
    return "fill";
  case Command::kCopy:
    return "copy";
  case Command::kFeed:
    return "feed";
  case Command::kSend:
    return "send";
  case Command::kReceive:
    return "receive";
  case Command::kCollective:
    return "collective";
  case Command::KIND_NOT_SET:
    break;
  }
  return "";
}

double secondsOf(const std::vector<CommandTotals> &totals) {
  double seconds = 0;
  for (const CommandTotals &one : totals)
    seconds += one.seconds;
  return seconds;
}

} // namespace

Rates ratesOf(const Plan &plan) {
  const plan::proto::Rates &rates = plan.machine().rates();
  return {.bytes = rates.bytes_per_second(),
          .commandSeconds = rates.command_seconds(),
          .float32 = rates.float32_flops(),
          .tf32 = rates.tf32_flops(),
          .bfloat16 = rates.bfloat16_flops(),
          .attention = rates.attention_flops()};
}

Work workOf(const Command &command) {
  Work work{.bytes = bytesTouched(command)};
  if (command.has_kernel()) {
    work.flops = plan::flopsOf(command.kernel());
    work.kind = kindOf(command.kernel());
  }
  return work;
}

std::vector<CommandTotals> commandsOfStep(const Plan &plan, const Role &role) {
  const Rates rates = ratesOf(plan);
  std::map<std::string, CommandTotals> byName;
  for (const plan::proto::Call &call : stepOf(role).calls())
    for (const Command &command : role.routines(int(call.routine())).commands()) {
      CommandTotals &totals = byName[nameOf(command)];
      const Work work = workOf(command);
      ++totals.commands;
      totals.flops += work.flops;
      totals.bytes += work.bytes;
      totals.seconds += seconds(work, rates);
    }
  std::vector<CommandTotals> sorted;
  for (auto &[name, totals] : byName) {
    sorted.push_back(totals);
    sorted.back().name = name;
  }
  std::ranges::stable_sort(sorted, std::greater(), &CommandTotals::seconds);
  return sorted;
}

const Role &slowestRole(const Plan &plan) {
  int slowest = 0;
  double most = 0;
  for (int i = 0; i < plan.roles_size(); ++i)
    if (const double seconds = secondsOf(commandsOfStep(plan, plan.roles(i))); seconds > most) {
      slowest = i;
      most = seconds;
    }
  return plan.roles(slowest);
}

Table commandTable(const Plan &plan, const Role &role) {
  const bool knowsRates = ratesOf(plan).known();
  const std::vector<CommandTotals> totals = commandsOfStep(plan, role);
  const double all = secondsOf(totals);
  Table::Row head{"kernel", "commands", "FLOP", "bytes", "share of time"};
  if (knowsRates)
    head.emplace_back("time");
  Table table(std::move(head), {false, true, true, true, true, true});
  const auto add = [&](const CommandTotals &one) {
    Table::Row row{one.name, grouped(one.commands), one.flops > 0 ? countText(one.flops) : "", countText(one.bytes),
                   percentText(all > 0 ? one.seconds / all : 0)};
    if (knowsRates)
      row.push_back(secondsText(one.seconds));
    table.add(std::move(row));
  };
  CommandTotals sum{.name = "all", .seconds = all};
  for (const CommandTotals &one : totals) {
    add(one);
    sum.commands += one.commands;
    sum.flops += one.flops;
    sum.bytes += one.bytes;
  }
  add(sum);
  return table;
}

} // namespace ds::report
