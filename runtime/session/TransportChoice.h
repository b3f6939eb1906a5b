//===- TransportChoice.h - how a run's ranks reach each other -------------===//
#pragma once

#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"

#include <memory>

namespace ds::runtime {

struct TrainingOptions;

/// All of the plan's ranks in this process, or one a process where a launcher has started several: by MPI on the CPU,
/// on GPUs by NCCL, with MPI or torchrun's variables to find each other. Throws ds::Error.
std::unique_ptr<Transport> chooseTransport(const plan::proto::Plan &plan, const TrainingOptions &options);

} // namespace ds::runtime
