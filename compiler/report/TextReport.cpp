//===- TextReport.cpp - the report that people read -----------------------===//
#include "compiler/report/Facts.h"
#include "compiler/report/Formats.h"
#include "compiler/report/Fragmentation.h"
#include "compiler/report/PeakMemory.h"
#include "compiler/report/PipelineStages.h"
#include "compiler/report/Table.h"
#include "compiler/report/Tables.h"
#include "compiler/report/Transfers.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ds::report {
namespace {

using plan::proto::Plan;
using plan::proto::Role;

constexpr size_t largestTensors = 10;

void printHead(std::string &page, const Plan &plan) {
  page += plan.model() + "\n";
  page += "  compiled by ds-opt " + plan.compiler_revision() + " for machine " + plan.machine().name() + " (" +
          plan.machine().device() + ")\n";
  for (const auto &[label, sentence] : headLines(plan))
    page += "  " + label + std::string(10 - label.size(), ' ') + sentence + "\n";
}

/// What of the training state each rank holds; nothing where ranks share nothing.
void printZero(std::string &page, const Plan &plan, const Role &role) {
  const Table buckets = bucketTable(plan, role);
  if (buckets.rows().size() == 1)
    return;
  page += "\nstate over " + plural(plan::batchRanks(plan), "data rank") + ", rank " + rankRanges(role) + "\n";
  stateTable(plan, role).print(page);
  buckets.print(page);
}

void printMemory(std::string &page, const Plan &plan, const Role &role, std::string_view space) {
  const SpaceMemory memory = measure(role, space);
  if (memory.arenaBytes == 0)
    return;
  page += "\nmemory, rank " + rankRanges(role) + " (role " + role.name() + "), " + std::string(space) + "\n";
  memoryTable(role, memory, fragmentationAtPeak(plan, role, space, memory)).print(page);
  if (memory.peak) {
    const plan::proto::Program &program = role.programs(memory.peak->program);
    page += "  the peak is at " + instantText(plan, role, program, memory.peak->call, memory.peak->command) + ", in " +
            program.name() + "\n";
  }
  if (const uint64_t buffer = plan.training().checkpoint_buffer_bytes(); buffer > 0)
    page += "  ds-run --save takes up to " + grouped(buffer) + " bytes of the host more for each rank\n";
  page += "\nlargest at the peak, rank " + rankRanges(role) + ", " + std::string(space) + "\n";
  largestTable(role, memory, largestTensors).print(page);
}

void printConfig(std::string &page, const Plan &plan) {
  page += "\nconfiguration: " + plural(uint64_t(plan.config_size()), "key") + " written\n";
  if (plan.config_size() > 0)
    configTable(plan).print(page);
  page += "  with every default: " + plan.config_json() + "\n";
}

} // namespace

std::string textReport(const Plan &plan) {
  std::string page;
  printHead(page, plan);
  if (hasStages(plan)) {
    page += "\npipeline stages, a micro-batch\n";
    stageTable(plan).print(page);
  }
  if (const Table transfers = exposureTable(plan); transfers.rows().size() > 1) {
    page += "\ntransfers between device and host memory, a step on the simulated clock\n";
    transfers.print(page);
  }
  if (const Table moved = movementTable(plan); moved.rows().size() > 1) {
    page += "\n" + std::string(movementTitle) + "\n";
    moved.print(page);
  }
  const Role &slowest = slowestRole(plan);
  page += "\ncommands of a step, rank " + rankRanges(slowest) + (plan.roles_size() > 1 ? " (the slowest)" : "") +
          ", by the cost model\n";
  commandTable(plan, slowest).print(page);
  for (const Role &role : plan.roles())
    for (const char *space : {"device", "host", "nvme"})
      printMemory(page, plan, role, space);
  for (const Role &role : plan.roles())
    printZero(page, plan, role);
  page += "\nparameters\n";
  parameterTable(plan).print(page);
  printConfig(page, plan);
  return page;
}

} // namespace ds::report
