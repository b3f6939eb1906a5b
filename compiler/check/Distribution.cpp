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

} // namespace

void distribute(const RankMemory &memory, const std::vector<Contents> &read, std::vector<Contents> &written,
                size_t index) {
  const proto::Command &command = *memory.instance(index).command;
  const plan::AxisSet batch = plan::batchAxes(memory.plan());
  if (batch.empty() || !(command.has_kernel() || command.has_feed() || command.has_collective()))
    return; // a fill is alike everywhere; copies and messages bring what their source was
  plan::AxisSet axes;
  for (const Contents &contents : read)
    for (const OperandSegment &segment : contents.segments)
      axes = axes | segment.varies;
  if (command.has_feed() || (command.has_kernel() && draws(command)))
    axes = axes | batch;
  if (command.has_collective())
    axes = axes - plan::axesOf(memory.plan(), command.collective().communicator());
  for (Contents &contents : written)
    for (OperandSegment &segment : contents.segments)
      segment.varies = axes;
}

} // namespace ds::check
