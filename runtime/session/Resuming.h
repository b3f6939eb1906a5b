//===- Resuming.h - --resume: where a run goes on -------------------------===//
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::runtime {

struct TrainingOptions;

/// Where a run begins: at step 0, or where a checkpoint ends.
struct Beginning {
  std::string checkpoint; ///< its folder; empty: none
  /// Of the checkpoint or, with neither variables nor files, of a run that begins: what a save of it says, but for what
  /// is said anew at each save.
  Manifest manifest;
  std::vector<std::string> notes = {}; ///< sentences to show
};

/// Finds and reads the checkpoint of --resume. Every process calls it. Throws ds::Error where there is none, for one
/// that is damaged, for flags that contradict it, and where processes find different ones.
Beginning findBeginning(const TrainingOptions &options, const plan::proto::Plan &plan, Transport &transport);

/// --data's files, as a manifest has them.
std::vector<Manifest::DataFile> dataFiles(const TrainingOptions &options);

} // namespace ds::runtime
