//===- Distribution.cpp - what is alike on all ranks ----------------------===//
#include "compiler/check/Distribution.h"

#include "compiler/check/meaning/ReferenceOps.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>

namespace ds::check {

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
  if (command.has_feed() || draws(command.kernel())) // of micro-batches, of which every rank has another
    axes = axes | batch;
  if (command.has_collective())
    axes = axes - plan::axesOf(memory.plan(), command.collective().communicator());
  for (Contents &contents : written)
    for (OperandSegment &segment : contents.segments)
      segment.varies = axes;
}

} // namespace ds::check
