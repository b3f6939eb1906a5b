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

bool readsOwn(RankMemory &memory, const std::vector<Effect> &effects, uint64_t microbatch) {
  return std::ranges::any_of(effects, [&](const Effect &effect) {
    return effect.reads &&
           std::ranges::any_of(memory.segmentsOf(*effect.operand, microbatch), &OperandSegment::ownOfRank);
  });
}

void mark(std::vector<OperandSegment> &segments, bool ownOfRank) {
  for (OperandSegment &segment : segments)
    segment.ownOfRank = ownOfRank;
}

} // namespace

bool joinsDataRanks(const proto::Plan &plan, uint32_t communicator) {
  return plan::axesOf(plan, communicator) == plan::batchAxes(plan);
}

void distribute(RankMemory &memory, const std::vector<Effect> &effects,
                std::vector<std::vector<OperandSegment>> &written, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::Command &command = *instance.command;
  if (!memory.followsAll() || plan::batchRanks(memory.plan()) == 1)
    return; // the first rank's run is what the others' are
  if (command.has_kernel()) {
    const bool own = draws(command) || readsOwn(memory, effects, instance.microbatch);
    for (std::vector<OperandSegment> &segments : written)
      mark(segments, own);
  } else if (command.has_feed()) {
    mark(written[0], true);
  } else if (command.has_collective()) {
    const bool own = !joinsDataRanks(memory.plan(), command.collective().communicator()) &&
                     readsOwn(memory, effects, instance.microbatch);
    for (std::vector<OperandSegment> &segments : written)
      mark(segments, own);
  } // a fill is alike everywhere; copies and messages bring what their source was
}

} // namespace ds::check
