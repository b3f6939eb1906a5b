//===- CudaMover.h - bytes move on streams of GPUs ------------------------===//
#pragma once

#include "runtime/comm/inprocess/ByteMover.h"

#include <vector>

namespace ds::runtime {

/// Movers for the ranks of one process, of which rank r has the GPU gpuOfRank[r]; several may share one. Queues give
/// their streams to collectives and messages. Throws ds::Error where two GPUs cannot read each other's memory.
MakeByteMover makeCudaMovers(const std::vector<int> &gpuOfRank);

} // namespace ds::runtime
