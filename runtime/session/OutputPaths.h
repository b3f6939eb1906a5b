//===- OutputPaths.h - results never overwrite what a run reads -----------===//
#pragma once

#include "runtime/plan/plan.pb.h"

namespace ds::runtime {

struct TrainingOptions;

/// Throws ds::Error if --export, --metrics or --trace names the plan, one of its weight files, a file of --data or
/// --eval-data, or the same file as another of the three; --metrics and --trace may not be --weights either, which
/// --export may replace, since it is read before.
void refuseOverwriting(const TrainingOptions &options, const plan::proto::Plan &plan);

} // namespace ds::runtime
