//===- Tables.cpp - what the text and the html report show alike ----------===//
#include "compiler/report/Tables.h"

#include "compiler/report/Advice.h"
#include "compiler/report/Facts.h"
#include "compiler/report/Fragmentation.h"
#include "compiler/report/PeakMemory.h"
#include "compiler/report/PipelineStages.h"
#include "compiler/report/Sharing.h"
#include "compiler/report/Table.h"
#include "compiler/report/Transfers.h"
#include "compiler/report/WireBytes.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/CommandWork.h"
#include "runtime/plan/run/Flops.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::report {

using plan::proto::Buffer;
using plan::proto::Plan;
using plan::proto::Role;

namespace {

std::string percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? "" : std::to_string((part * 1000 / whole + 5) / 10) + " %";
}

/// The names of the roles that hold each variable, or a part of it.
std::vector<std::vector<std::string>> holdersOf(const Plan &plan) {
  std::vector<std::vector<std::string>> holders(size_t(plan.variables_size()));
  for (const Role &role : plan.roles())
    for (uint32_t variable : variablesHeld(plan, role))
      holders[variable].push_back(role.name());
  return holders;
}

std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// "113 MiB a step, from rank 0: all_gather 59,265,864"; of several roles, from a rank of the one that sends most.
std::string wireText(const Plan &plan) {
  WireBytes most;
  uint64_t from = 0;
  for (const Role &role : plan.roles())
    if (const WireBytes wire = wireBytesPerStep(plan, role, role.ranks(0)); wire.sum() > most.sum()) {
      most = wire;
      from = role.ranks(0);
    }
  std::string text = bytesText(most.sum()) + " a step, from rank " + grouped(from);
  if (most.sum() > 0)
    text += ": all_gather " + grouped(most.allGather) + ", reduce_scatter " + grouped(most.reduceScatter) +
            ", all_reduce " + grouped(most.allReduce);
  if (most.send > 0)
    text += ", send " + grouped(most.send);
  if (most.byAxes.size() > 1)
    for (const char *between = "; along "; const auto &[axes, bytes] : most.byAxes) {
      text += between + axes + " " + grouped(bytes);
      between = ", ";
    }
  return text;
}

/// "10.8 MiB out of device memory and 10.8 MiB back, 1.0 MiB to NVMe and 1.0 MiB from it, a step and rank"; of several
/// roles, of the one that copies most.
std::string transferText(const Plan &plan) {
  TransferBytes most;
  for (const Role &role : plan.roles())
    if (const TransferBytes moved = transferBytesPerStep(role); moved.sum() > most.sum())
      most = moved;
  if (most.sum() == 0)
    return "";
  const std::string link = unknownLink(plan);
  return bytesText(most.out) + " out of device memory and " + bytesText(most.back) + " back" +
         (most.written + most.read > 0
              ? ", " + bytesText(most.written) + " to NVMe and " + bytesText(most.read) + " from it,"
              : "") +
         " a step and rank" + (plan.roles_size() > 1 ? " at most" : "") +
         (link.empty()
              ? ""
              : "; how long that takes is unknown, since machine " + plan.machine().name() + " has no link " + link);
}

/// Of the role that has most.
std::string workText(const Plan &plan) {
  uint64_t most = 0;
  for (const Role &role : plan.roles())
    most = std::max(most, plan::matmulFlopsPerStep(plan, role));
  return countText(double(most)) + "FLOP of matrix products a step and rank" +
         (plan.roles_size() > 1 ? " at most" : "") + (plan.has_recompute() ? "" : ", none recomputed");
}

std::string recomputeText(const Plan &plan) {
  const plan::proto::Recompute &recompute = plan.recompute();
  uint64_t work = 0, again = 0;
  for (const Role &role : plan.roles()) {
    work += plan::matmulFlopsPerStep(plan, role);
    again += plan::recomputeFlopsPerStep(plan, role);
  }
  const std::string layers = grouped(recompute.layers_again()) + " of " + plural(recompute.layers(), "layer");
  const std::string what = recompute.layers() == 0  ? "what the rules name"
                           : recompute.level() == 0 ? layers + ", whole"
                                                    : "level " + grouped(recompute.level()) + " of " +
                                                          grouped(recompute.levels()) + ", in " + layers;
  return what + "; " +
         (again == 0
              ? "no matrix product is done again"
              : countText(double(again)) + "FLOP of matrix products done again, " + percent(again, work) + " more");
}

/// Programs that a device may record, with the commands of a record on the rank that has most of them.
std::string capturedText(const Plan &plan) {
  std::map<std::string, uint64_t> commands;
  for (const Role &role : plan.roles())
    for (const plan::proto::Program &program : role.programs()) {
      if (!program.captured())
        continue;
      uint64_t sum = 0;
      for (const plan::proto::Call &call : program.calls())
        sum += uint64_t(role.routines(int(call.routine())).commands_size());
      commands[program.name()] = std::max(commands[program.name()], sum);
    }
  std::string text;
  for (const auto &[name, count] : commands)
    text += (text.empty() ? "program " : ", ") + name + " as one launch of " + plural(count, "command");
  return text;
}

/// Kernels that the plan carries, and how many commands of a rank's routines run them.
std::string compiledText(const Plan &plan) {
  const CompiledKernels compiled = compiledKernels(plan);
  if (compiled.kernels == 0)
    return "";
  return plural(compiled.kernels, "kernel") + " for " + plural(compiled.commands, "command") + " in " +
         grouped(compiled.bytes) + " bytes of PTX";
}

/// What `ds-run --tune` chose.
std::string tunedText(const Plan &plan) {
  if (!plan.has_tuning())
    return "";
  return "algorithms of " + plural(tunedCommands(plan), "product") + ", on " + plan.tuning().gpu() + " with cuBLASLt " +
         std::to_string(plan.tuning().cublaslt());
}

std::string sizesText(const Plan &plan) {
  std::string text;
  for (const uint64_t size : plan::sizesOf(plan))
    text += (text.empty() ? plan.dimension() + " " : ", ") + grouped(size);
  return text.empty() ? text : text + "; arenas are of all, and what else stands here of the largest";
}

double secondsOf(const std::vector<plan::CommandTotals> &totals) {
  double seconds = 0;
  for (const plan::CommandTotals &one : totals)
    seconds += one.seconds;
  return seconds;
}

} // namespace

std::vector<std::pair<std::string, std::string>> headLines(const Plan &plan) {
  const WorldSize world = worldSize(plan);
  const plan::proto::Training &training = plan.training();
  const std::vector<std::string> own = ownOfDataRanks(plan);
  std::vector<std::pair<std::string, std::string>> lines = {
      {"ranks", grouped(world.ranks()) + " = " + grouped(world.pipe) + " pipe x " + grouped(world.data) + " data x " +
                    grouped(world.tensor) + " tensor; numerics " + plan.numerics() +
                    (own.empty() ? ""
                                 : ", but for " + plural(own.size(), "buffer") + " such as " + own.front() +
                                       ": each data rank has its own micro-batches', and rank 0's are exported") +
                    (plan.stale() ? ", stale: each update is of the gradient of the step before" : "")},
      {"batch", grouped(training.train_batch_size()) + " samples a step = " + grouped(training.micro_batch_size()) +
                    " a micro-batch x " + grouped(training.accumulation_steps()) + " accumulation steps x " +
                    plural(plan::batchRanks(plan), "data rank")},
      {"work", workText(plan)}};
  if (const std::string text = sizesText(plan); !text.empty())
    lines.emplace_back("sizes", text);
  if (const std::string text = stepText(plan); !text.empty())
    lines.emplace_back("step", text);
  if (plan.has_recompute())
    lines.emplace_back("recompute", recomputeText(plan));
  if (hasStages(plan))
    lines.emplace_back("pipeline", pipelineLine(plan));
  if (plan.roles_size() > 0)
    lines.emplace_back("wire", wireText(plan));
  if (const std::string text = transferText(plan); !text.empty())
    lines.emplace_back("offload", text);
  if (const std::string text = capturedText(plan); !text.empty())
    lines.emplace_back("captured", text);
  if (const std::string text = compiledText(plan); !text.empty())
    lines.emplace_back("compiled", text);
  if (const std::string text = tunedText(plan); !text.empty())
    lines.emplace_back("tuned", text);
  if (plan.machine().reserve() > 0)
    lines.emplace_back("reserve", bytesText(plan.machine().reserve()) +
                                      " of each rank's device, which the machine file keeps for memory outside of "
                                      "arenas: the device's context, libraries' channels, recorded programs");
  return lines;
}

Table memoryTable(const Role &role, const SpaceMemory &memory, const Fragmentation &fragmentation) {
  Table table({"", "bytes", "", "of the arena"}, {false, true, true, true});
  const auto row = [&](const std::string &what, uint64_t bytes) {
    table.add({what, grouped(bytes), bytesText(bytes), percent(bytes, memory.arenaBytes)});
  };
  row("arena", memory.arenaBytes);
  row("live at the peak", memory.peakLiveBytes);
  for (int category = Buffer::WEIGHTS; category <= Buffer::CONSTANTS; ++category)
    if (memory.atPeak[size_t(category)] > 0)
      row("  " + std::string(categoryName(Buffer::Category(category))), memory.atPeak[size_t(category)]);
  if (memory.arenaBytes >= memory.peakLiveBytes)
    row("fragmentation", memory.arenaBytes - memory.peakLiveBytes);
  for (const auto &[reason, bytes] : {std::pair("  alignment", fragmentation.alignment),
                                      {"  message slots", fragmentation.messageSlots},
                                      {"  idle slots", fragmentation.idleSlots},
                                      {"  gaps", fragmentation.gaps}})
    if (bytes > 0)
      row(reason, bytes);
  row("live in init, load, save", memory.residentBytes);
  row("live in step", memory.programPeak(role, "step"));
  row("live in eval", memory.programPeak(role, "evaluate"));
  return table;
}

Table largestTable(const Role &role, const SpaceMemory &memory, size_t most) {
  Table table({"tensor", "kind", "bytes", ""}, {false, false, true, true});
  for (size_t i = 0; i < std::min(most, memory.alive.size()); ++i) {
    const plan::LiveBuffer &live = memory.alive[i];
    const Buffer &buffer = role.buffers(live.buffer);
    table.add(
        {buffer.name(), std::string(categoryName(buffer.category())), grouped(live.bytes), bytesText(live.bytes)});
  }
  return table;
}

Table stateTable(const Plan &plan, const Role &role) {
  Table table({"", "unsharded", "", "a rank", "", "padding"}, {false, true, true, true, true, true});
  for (Buffer::Category category : {Buffer::WEIGHTS, Buffer::GRADIENTS, Buffer::OPTIMIZER}) {
    const StateFacts facts = stateFacts(plan, role, category);
    table.add({std::string(categoryName(category)), grouped(facts.wholeBytes), bytesText(facts.wholeBytes),
               grouped(facts.heldBytes), bytesText(facts.heldBytes), grouped(facts.paddingBytes)});
  }
  return table;
}

/// "replicated", "sharded over data".
static std::string heldText(const Plan &plan, const BucketFacts &facts) {
  if (facts.heldBytes == facts.wholeBytes)
    return "replicated";
  std::string axes;
  if (const plan::proto::Placement &placement = facts.bucket->placement(); placement.has_window())
    for (const uint32_t axis : plan.communicators(int(placement.window().communicator())).axes())
      axes += (axes.empty() ? " over " : " x ") + plan.world().axes(int(axis)).name();
  return "sharded" + axes;
}

Table bucketTable(const Plan &plan, const Role &role) {
  Table table({"bucket", "held", "members", "elements", "a rank", "padding"}, {false, false, true, true, true, true});
  for (const BucketFacts &facts : bucketFacts(plan, role))
    table.addWithNote({facts.bucket->name(), heldText(plan, facts), grouped(uint64_t(facts.bucket->members_size())),
                       grouped(facts.bucket->elements()), grouped(facts.heldBytes), grouped(facts.paddingBytes)},
                      facts.oversized ? "larger than the bucket size: a bucket of its own" : "");
  return table;
}

Table parameterTable(const Plan &plan) {
  struct Sum {
    uint64_t tensors = 0, elements = 0, bytes = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums; // by (trained or frozen, type)
  for (const plan::proto::Variable &variable : plan.variables()) {
    const bool parameter = variable.kind() == plan::proto::Variable::PARAMETER;
    if (!parameter && variable.kind() != plan::proto::Variable::BUFFER)
      continue;
    Sum &sum = sums[{!parameter             ? "buffers"
                     : variable.trainable() ? "trained parameters"
                                            : "frozen parameters",
                     std::string(dtypeName(variable.dtype()))}];
    ++sum.tensors;
    sum.elements += elements(variable.shape());
    sum.bytes += bytesOf(variable);
  }
  Table table({"", "type", "tensors", "elements", "", "bytes", ""}, {false, false, true, true, true, true, true});
  for (auto it = sums.rbegin(); it != sums.rend(); ++it) // trained, frozen, buffers
    table.add({it->first.first, it->first.second, grouped(it->second.tensors), grouped(it->second.elements),
               countText(double(it->second.elements)), grouped(it->second.bytes), bytesText(it->second.bytes)});
  return table;
}

Table parameterList(const Plan &plan) {
  const std::vector<std::vector<std::string>> holders = holdersOf(plan);
  Table table({"parameter", "type", "shape", "bytes", "", "held by"}, {false, false, false, true});
  for (int i = 0; i < plan.variables_size(); ++i) {
    const plan::proto::Variable &variable = plan.variables(i);
    if (variable.kind() != plan::proto::Variable::PARAMETER)
      continue;
    std::string name = variable.name();
    for (const std::string &alias : variable.aliases())
      name += ", " + alias;
    table.add({name, std::string(dtypeName(variable.dtype())), shapeText(variable.shape()), grouped(bytesOf(variable)),
               variable.trainable() ? "trained" : "frozen", joined(holders[size_t(i)])});
  }
  return table;
}

Table wireTable(const WireBytes &wire) {
  Table table({"wire bytes a step", "bytes", ""}, {false, true, true});
  for (const auto &[kind, bytes] : {std::pair("all_gather", wire.allGather),
                                    {"reduce_scatter", wire.reduceScatter},
                                    {"all_reduce", wire.allReduce},
                                    {"broadcast", wire.broadcast},
                                    {"all_to_all", wire.allToAll},
                                    {"send", wire.send}})
    if (bytes > 0)
      table.add({kind, grouped(bytes), bytesText(bytes)});
  return table;
}

Table configTable(const Plan &plan) {
  Table table({"key", "value", "answer"}, {});
  for (const plan::proto::ConfigAnswer &answer : plan.config())
    table.addWithNote({answer.path(), answer.value_json(), answer.status()}, answer.note());
  return table;
}

std::string instantText(const Plan &plan, const Role &role, const plan::proto::Program &program, int call,
                        int command) {
  const plan::proto::Call &called = program.calls(call);
  const plan::proto::Routine &routine = role.routines(int(called.routine()));
  const plan::proto::Command &run = routine.commands(command);
  std::string name = run.has_kernel() ? run.kernel().kernel() : "";
  if (run.reference_size() > 0) {
    const plan::proto::ReferenceOp &op = plan.reference().ops(int(run.reference(0)));
    name = op.name().empty() ? op.op() : op.name();
  }
  return "command " + std::to_string(command) + (name.empty() ? "" : " (" + name + ")") + " of " + routine.name() +
         ", micro-batch " + std::to_string(called.microbatch());
}

const Role &slowestRole(const Plan &plan) {
  int slowest = 0;
  double most = 0;
  for (int i = 0; i < plan.roles_size(); ++i)
    if (const double seconds = secondsOf(plan::commandsOfStep(plan, plan.roles(i))); seconds > most) {
      slowest = i;
      most = seconds;
    }
  return plan.roles(slowest);
}

Table commandTable(const Plan &plan, const Role &role) {
  const bool knowsRates = plan::ratesOf(plan).known();
  const std::vector<plan::CommandTotals> totals = plan::commandsOfStep(plan, role);
  const double all = secondsOf(totals);
  Table::Row head{"kernel", "commands", "FLOP", "bytes", "share of time"};
  if (knowsRates)
    head.emplace_back("time");
  Table table(std::move(head), {false, true, true, true, true, true});
  const auto add = [&](const plan::CommandTotals &one) {
    Table::Row row{one.name, grouped(one.commands), one.flops > 0 ? countText(one.flops) : "", countText(one.bytes),
                   percentText(all > 0 ? one.seconds / all : 0)};
    if (knowsRates)
      row.push_back(secondsText(one.seconds));
    table.add(std::move(row));
  };
  plan::CommandTotals sum{.name = "all", .seconds = all};
  for (const plan::CommandTotals &one : totals) {
    add(one);
    sum.commands += one.commands;
    sum.flops += one.flops;
    sum.bytes += one.bytes;
  }
  add(sum);
  return table;
}

} // namespace ds::report
