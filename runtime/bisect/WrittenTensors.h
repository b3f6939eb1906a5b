//===- WrittenTensors.h - which tensors a command writes ------------------===//
#pragma once

#include "runtime/bisect/Tensor.h"
#include "runtime/executor/WriteObserver.h"

#include <cstdint>
#include <vector>

namespace ds::runtime {

/// Elements of a tensor of the command's own plan, where they lie in an operand.
struct WrittenTensor {
  TensorKey key; ///< without step and micro-batch
  uint64_t first, count, elements;
  uint64_t byteOffset = 0;
};

/// For each operand of ObservedCommand::written, what a run on one device has there too; empty where it has nothing
/// that could be compared: workspaces, gathered copies, sums of one rank's share of the micro-batches.
std::vector<std::vector<WrittenTensor>> tensorsWrittenBy(const ObservedCommand &command);

/// Micro-batch of the step, over all ranks, up to which a sum over ranks reaches; or which a kernel is for.
uint64_t microbatchOf(const ObservedCommand &command, uint64_t microStep);

/// Whether a step leaves in the variable what one device would: not constants, gradients, nor statistics of a rank.
bool isComparable(const plan::proto::Plan &plan, const plan::proto::Variable &variable);

} // namespace ds::runtime
