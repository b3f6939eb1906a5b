//===- ExportVariables.h - --export ---------------------------------------===//
#pragma once

#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/LocalRanks.h"

#include <atomic>
#include <string>

namespace ds::runtime {

/// Throws ds::Error if the export would fail for a reason that can be seen before training: no such folder, or a
/// parameter that the ranks do not hold between them.
void checkExport(const plan::proto::Plan &plan, const LocalRanks &ranks, const std::string &path);

/// Writes all parameters and persistent buffers under their PyTorch names, whole, from the ranks that hold their parts;
/// the other names of a tied weight go into the file's metadata, alias to name. Every process calls it, that of rank 0
/// writes. Throws ds::Error, also as soon as `stop` becomes true.
void exportVariables(const plan::proto::Plan &plan, const LocalRanks &ranks, Transport &transport,
                     const std::string &path, const std::atomic<bool> &stop);

} // namespace ds::runtime
