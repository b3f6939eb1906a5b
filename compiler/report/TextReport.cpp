//===- TextReport.cpp - the report that people read -----------------------===//
#include "compiler/report/Facts.h"
#include "compiler/report/Formats.h"
#include "compiler/report/Liveness.h"
#include "compiler/report/Sharing.h"
#include "compiler/report/Table.h"
#include "compiler/report/WireBytes.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Buffer;
using plan::proto::Plan;
using plan::proto::Role;

constexpr size_t largestTensors = 10;

void printHead(std::string &page, const Plan &plan) {
  const WorldSize world = worldSize(plan);
  const plan::proto::Training &training = plan.training();
  page += plan.model() + "\n";
  page += "  compiled by ds-opt " + plan.compiler_revision() + " for machine " + plan.machine().name() + " (" +
          plan.machine().device() + ")\n";
  page += "  ranks     " + grouped(world.ranks()) + " = " + grouped(world.pipe) + " pipe x " + grouped(world.data) +
          " data x " + grouped(world.tensor) + " tensor; numerics " + plan.numerics() + "\n";
  page += "  batch     " + grouped(training.train_batch_size()) +
          " samples a step = " + grouped(training.micro_batch_size()) + " a micro-batch x " +
          grouped(training.accumulation_steps()) + " accumulation steps x " + plural(world.data, "data rank") + "\n";
  page += "  work      " + countText(double(matmulFlopsPerStep(plan))) +
          "FLOP of matrix products a step and rank, none recomputed\n";
  if (plan.roles_size() == 0)
    return;
  const WireBytes wire = wireBytesPerStep(plan, plan.roles(0), 0);
  page += "  wire      " + bytesText(wire.sum()) + " a step, from rank 0";
  if (wire.sum() > 0)
    page += ": all_gather " + grouped(wire.allGather) + ", reduce_scatter " + grouped(wire.reduceScatter) +
            ", all_reduce " + grouped(wire.allReduce);
  page += "\n";
}

/// What of the training state each rank holds; nothing where ranks share nothing.
void printZero(std::string &page, const Plan &plan, const Role &role) {
  const std::vector<BucketFacts> buckets = bucketFacts(plan, role);
  if (buckets.empty())
    return;
  page += "\nshared out over " + plural(worldSize(plan).data, "data rank") + ", rank " + rankRanges(role) + "\n";
  Table table({"", "whole", "", "a rank", "", "padding"}, {false, true, true, true, true, true});
  for (Buffer::Category category : {Buffer::WEIGHTS, Buffer::GRADIENTS, Buffer::OPTIMIZER}) {
    const StateFacts facts = stateFacts(plan, role, category);
    table.add({std::string(categoryName(category)), grouped(facts.wholeBytes), bytesText(facts.wholeBytes),
               grouped(facts.heldBytes), bytesText(facts.heldBytes), grouped(facts.paddingBytes)});
  }
  table.print(page);
  Table list({"bucket", "held", "members", "elements", "a rank", "padding"}, {false, false, true, true, true, true});
  for (const BucketFacts &facts : buckets)
    list.addWithNote({facts.bucket->name(), facts.heldBytes == facts.wholeBytes ? "whole" : "slice",
                      grouped(uint64_t(facts.bucket->members_size())), grouped(facts.bucket->elements()),
                      grouped(facts.heldBytes), grouped(facts.paddingBytes)},
                     facts.oversized ? "larger than the bucket size: a bucket of its own" : "");
  list.print(page);
}

std::string percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? "" : std::to_string((part * 1000 / whole + 5) / 10) + " %";
}

/// "command 4 (h.0.mlp.c_fc) of backward, micro-batch 3, in step".
std::string instantText(const Plan &plan, const Role &role, const Instant &instant) {
  const plan::proto::Program &program = role.programs(instant.program);
  const plan::proto::Call &call = program.calls(instant.call);
  const plan::proto::Routine &routine = role.routines(int(call.routine()));
  const plan::proto::Command &command = routine.commands(instant.command);
  std::string name = command.has_kernel() ? command.kernel().kernel() : "";
  if (command.reference_size() > 0) {
    const plan::proto::ReferenceOp &op = plan.reference().ops(int(command.reference(0)));
    name = op.name().empty() ? op.op() : op.name();
  }
  return "command " + std::to_string(instant.command) + (name.empty() ? "" : " (" + name + ")") + " of " +
         routine.name() + ", micro-batch " + std::to_string(call.microbatch()) + ", in " + program.name();
}

void printMemory(std::string &page, const Plan &plan, const Role &role, std::string_view space) {
  const SpaceMemory memory = measure(role, space);
  if (memory.arenaBytes == 0)
    return;
  page += "\nmemory, rank " + rankRanges(role) + " (role " + role.name() + "), " + std::string(space) + "\n";
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
    row("padding", memory.arenaBytes - memory.peakLiveBytes);
  row("live in init, load, save", memory.residentBytes);
  row("live in step", memory.programPeak(role, "step"));
  row("live in eval", memory.programPeak(role, "evaluate"));
  table.print(page);
  if (memory.peak)
    page += "  the peak is at " + instantText(plan, role, *memory.peak) + "\n";

  page += "\nlargest at the peak, rank " + rankRanges(role) + ", " + std::string(space) + "\n";
  Table largest({"tensor", "kind", "bytes", ""}, {false, false, true, true});
  for (size_t i = 0; i < std::min(largestTensors, memory.alive.size()); ++i) {
    const LiveBuffer &live = memory.alive[i];
    const Buffer &buffer = role.buffers(live.buffer);
    largest.add(
        {buffer.name(), std::string(categoryName(buffer.category())), grouped(live.bytes), bytesText(live.bytes)});
  }
  largest.print(page);
}

void printParameters(std::string &page, const Plan &plan) {
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
  page += "\nparameters\n";
  Table table({"", "type", "tensors", "elements", "", "bytes", ""}, {false, false, true, true, true, true, true});
  for (auto it = sums.rbegin(); it != sums.rend(); ++it) // trained, frozen, buffers
    table.add({it->first.first, it->first.second, grouped(it->second.tensors), grouped(it->second.elements),
               countText(double(it->second.elements)), grouped(it->second.bytes), bytesText(it->second.bytes)});
  table.print(page);
}

void printConfig(std::string &page, const Plan &plan) {
  page += "\nconfiguration: " + plural(uint64_t(plan.config_size()), "key") + " written\n";
  if (plan.config_size() > 0) {
    Table table({"key", "value", "answer"}, {});
    for (const plan::proto::ConfigAnswer &answer : plan.config())
      table.addWithNote({answer.path(), answer.value_json(), answer.status()}, answer.note());
    table.print(page);
  }
  page += "  with every default: " + plan.config_json() + "\n";
}

} // namespace

std::string textReport(const Plan &plan) {
  std::string page;
  printHead(page, plan);
  for (const Role &role : plan.roles())
    for (const char *space : {"device", "host", "nvme"})
      printMemory(page, plan, role, space);
  for (const Role &role : plan.roles())
    printZero(page, plan, role);
  printParameters(page, plan);
  printConfig(page, plan);
  return page;
}

} // namespace ds::report
