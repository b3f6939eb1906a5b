//===- TensorUses.h - when tensors must be in memory, and what absence costs ---===//
#pragma once

#include "compiler/scheduling/MovementProblem.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ds::scheduling {

/// Somebody reads a tensor, or makes it.
struct TensorUse {
  enum By {
    Compute, // a command of the device's one order, at `moment`: the tensor is in device memory meanwhile
    Device,  // another command of the device, some time between the uses around it
    Host     // a command with host memory alone
  } by = Compute;
  int64_t moment = 0; // of Compute
};

/// What one place after another holds: a copy makes no new tensor, a write does. Uses are in order, each moment once.
/// Where moments go down, what follows is of the next step.
struct UsedTensor {
  enum Origin {
    Made,   // by its first use
    Copied, // from the host, which keeps it
    Kept    // never written: after its last use comes the first one of the next step
  };
  int64_t bytes = 0;
  Origin origin = Made;
  std::vector<TensorUse> uses;
};

/// What moves in any case, since host and device both use it; and what moves for want of room.
struct Movement {
  int64_t forced = 0; // bytes
  MovementProblem problem;
};

/// `used`: bytes that the compute command of each moment uses, which cannot be away. A schedule of the same commands in
/// the same order, which repeats step after step, moves at least `forced` and what the problem's cheapest absences
/// cost, whatever pieces it moves.
///
/// A tensor may be away between two uses by compute. Each byte is copied in again; and out, if the host does not have
/// it. One copy out serves all absences. The one pays for it that covers most moments at which something is missing;
/// the others come in only, which no schedule can undercut. Of an absence that lasts into the next step, the longer
/// part pays.
Movement movementOf(std::span<const UsedTensor> tensors, std::span<const int64_t> used, int64_t capacity);

} // namespace ds::scheduling
