//===- EqualProcesses.h - all processes of a run do the same --------------===//
#pragma once

#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/TrainingOptions.h"

#include <cstdint>

namespace ds::runtime {

/// Compares plan, software and flags with the other processes: such that disagree would wait for each other for ever,
/// or compute something else than the plan. Every process calls it. Throws ds::Error that names what differs.
void requireEqualEverywhere(Transport &transport, const plan::proto::Plan &plan, const TrainingOptions &options);

/// Steps between comparisons of what is replicated, as --replica-digest-interval or the plan's device says.
uint64_t replicaDigestInterval(const plan::proto::Plan &plan, const TrainingOptions &options);

} // namespace ds::runtime
