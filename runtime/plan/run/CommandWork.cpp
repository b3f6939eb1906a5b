//===- CommandWork.cpp - what commands do, and how long the cost model says ===//
#include "runtime/plan/run/CommandWork.h"

#include "core/CostModel.h"
#include "core/DType.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/Flops.h"
#include "runtime/plan/run/Tail.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ds::plan {
namespace {

using proto::Command;
using proto::Operand;
using proto::Plan;
using proto::Role;

template <typename Operands> double sumOfBytes(const Operands &operands) {
  double bytes = 0;
  for (const Operand &operand : operands)
    bytes += operand.access() == Operand::SCRATCH ? 0 : double(bytesOf(operand));
  return bytes;
}

/// Of operands that are read and written, once more.
double bytesAgain(const proto::KernelCommand &kernel) {
  double bytes = 0;
  for (const Operand &operand : kernel.operands())
    bytes += operand.access() == Operand::READ_WRITE ? double(bytesOf(operand)) : 0;
  return bytes;
}

double bytesTouched(const Command &command) {
  switch (command.kind_case()) {
  case Command::kKernel:
    return sumOfBytes(command.kernel().operands()) + bytesAgain(command.kernel());
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
    for (const proto::CollectivePart &part : command.collective().parts())
      bytes += double(bytesOf(part.source()) + bytesOf(part.target()));
    return bytes;
  }
  case Command::KIND_NOT_SET:
    break;
  }
  return 0;
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

} // namespace

uint64_t bytesOf(const Operand &operand) {
  const auto dtype = dtypeFromNumber(int(operand.dtype()));
  uint64_t bytes = dtype ? uint64_t(byteSize(*dtype)) : 0;
  for (int64_t size : operand.shape())
    bytes *= uint64_t(size);
  return bytes;
}

Rates ratesOf(const Plan &plan) {
  const proto::Rates &rates = plan.machine().rates();
  return {.bytes = rates.bytes_per_second(),
          .commandSeconds = rates.command_seconds(),
          .float32 = rates.float32_flops(),
          .tf32 = rates.tf32_flops(),
          .bfloat16 = rates.bfloat16_flops(),
          .fp8 = rates.fp8_flops(),
          .attention = rates.attention_flops(),
          .multiprocessors = double(rates.multiprocessors())};
}

Work workOf(const Command &command) {
  const double bytes = bytesTouched(command);
  if (!command.has_kernel())
    return {.bytes = bytes};
  Work work = workOf(command.kernel(), bytes);
  work.bytesAgain = bytesAgain(command.kernel());
  return work;
}

double secondsOf(const Plan &plan, const Role &role, const Command &command) {
  const Rates device = ratesOf(plan);
  if (role.queues(int(command.queue())).kind() != proto::Queue::HOST)
    return seconds(workOf(command), device);
  const auto link = std::ranges::find(plan.machine().links(), "device-host", &proto::Link::between);
  const bool isKnown = link != plan.machine().links().end();
  return seconds(workOf(command),
                 ratesOfHost(device, isKnown ? link->bytes_per_second() : 0, isKnown ? link->latency_seconds() : 0));
}

std::vector<CommandTotals> commandsOfStep(const Plan &plan, const Role &role) {
  const Rates rates = ratesOf(plan);
  std::map<std::string, CommandTotals> byName;
  for (const proto::Call &call : callsBeforeTail(*std::ranges::find(role.programs(), "step", &proto::Program::name)))
    for (const Command &command : role.routines(int(call.routine())).commands()) {
      CommandTotals &totals = byName[nameOf(command)];
      const Work work = workOf(command);
      ++totals.commands;
      totals.flops += work.flops;
      totals.bytes += work.bytes + (rates.multiprocessors > 0 ? work.scratch : 0);
      totals.seconds += secondsOf(plan, role, command);
    }
  std::vector<CommandTotals> sorted;
  for (auto &[name, totals] : byName) {
    sorted.push_back(totals);
    sorted.back().name = name;
  }
  std::ranges::stable_sort(sorted, std::greater(), &CommandTotals::seconds);
  return sorted;
}

} // namespace ds::plan
