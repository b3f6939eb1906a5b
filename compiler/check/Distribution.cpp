//===- Distribution.cpp - what is alike on all ranks ----------------------===//
#include "compiler/check/Distribution.h"

#include "kernels/KernelRows.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>

namespace ds::check {

namespace {

/// Whether a kernel's numbers follow from the micro-batch, which every rank has another of.
bool draws(const proto::Command &command) {
  const std::string &kernel = command.kernel().kernel();
  return kernel == kernels::kernel<"dropout">.name || kernel == kernels::kernel<"uniform">.name;
}

/// The axes along which anything varies that the command reads.
plan::AxisSet varyingReads(RankMemory &memory, const std::vector<Effect> &effects, uint64_t microbatch) {
  plan::AxisSet axes;
  for (const Effect &effect : effects)
    if (effect.reads)
      for (const OperandSegment &segment : memory.segmentsOf(*effect.operand, microbatch))
        axes = axes | segment.varies;
  return axes;
}

} // namespace

void distribute(RankMemory &memory, const std::vector<Effect> &effects,
                std::vector<std::vector<OperandSegment>> &written, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::Command &command = *instance.command;
  const plan::AxisSet batch = plan::batchAxes(memory.plan());
  if (!memory.followsAll() || batch.empty())
    return; // the first rank's run is what the others' are
  plan::AxisSet axes;
  if (command.has_kernel())
    axes = varyingReads(memory, effects, instance.microbatch) | (draws(command) ? batch : plan::AxisSet());
  else if (command.has_feed())
    axes = batch;
  else if (command.has_collective())
    axes = varyingReads(memory, effects, instance.microbatch) -
           plan::axesOf(memory.plan(), command.collective().communicator());
  else
    return; // a fill is alike everywhere; copies and messages bring what their source was
  for (std::vector<OperandSegment> &segments : written)
    for (OperandSegment &segment : segments)
      segment.varies = axes;
}

} // namespace ds::check
