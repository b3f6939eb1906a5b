//===- Transfer.h - copies between memories ---------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/CommandWork.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ds::report {

/// A copy between device memory and host memory, or host memory and NVMe.
struct Transfer {
  enum Direction { Out, Back, Write, Read }; // of device memory, back into it; of NVMe

  std::string name; // of the tensor
  Direction direction = Out;
  uint64_t bytes = 0;
};

/// What a command of a plan that validatePlan() accepts copies between memories, if it does.
std::optional<Transfer> transferOf(const plan::proto::Role &role, const plan::proto::Command &command);

/// Bytes that one rank copies in one run of the program `step`, by direction.
struct TransferBytes {
  uint64_t out = 0, back = 0, written = 0, read = 0;
  uint64_t sum() const { return out + back + written + read; }
};

TransferBytes transferBytesPerStep(const plan::proto::Role &role);

/// The program `step` of a role; every role has it.
const plan::proto::Program &stepOf(const plan::proto::Role &role);

using plan::bytesOf;

} // namespace ds::report
