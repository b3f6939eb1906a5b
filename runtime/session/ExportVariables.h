//===- ExportVariables.h - --export ---------------------------------------===//
#pragma once

#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/LocalRanks.h"

#include <atomic>
#include <string>
#include <vector>

namespace ds::runtime {

struct ExportOptions {
  std::string path;
  std::vector<std::string> elsewhere; ///< tried in order when `path` cannot be written
  bool allowNonFinite = false; ///< else a trainable parameter that is not finite, or a buffer that is NaN, is refused
};

/// Paths for an export that cannot go where it should: its name in the working directory, beside the plan and in the
/// folder for temporary files, marked with this process's number.
std::vector<std::string> exportsElsewhere(const std::string &path, const std::string &planPath);

/// Throws ds::Error if the export would fail for a reason that can be seen before training: no such folder, too little
/// space in it, or a parameter that the ranks do not hold between them.
void checkExport(const plan::proto::Plan &plan, const LocalRanks &ranks, const std::string &path);

/// Writes all parameters and persistent buffers under their PyTorch names, whole, from the ranks that hold their parts;
/// the other names of a tied weight go into the file's metadata, alias to name. Every process calls it, that of rank 0
/// writes, and all throw the same: NonFiniteError, or ds::Error where the file is elsewhere or nowhere, or as soon as
/// `stop` becomes true.
void exportVariables(const plan::proto::Plan &plan, const LocalRanks &ranks, Transport &transport,
                     const ExportOptions &options, const std::atomic<bool> &stop);

} // namespace ds::runtime
