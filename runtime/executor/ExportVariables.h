//===- ExportVariables.h - --export ---------------------------------------===//
#pragma once

#include "runtime/executor/Executor.h"

#include <string>

namespace ds::runtime {

/// Throws ds::Error if the export would fail for a reason that can be seen before training: no such folder, or a
/// parameter that the rank does not hold.
void checkExport(const plan::proto::Plan &plan, const Executor &executor, const std::string &path);

/// Writes all parameters and persistent buffers under their PyTorch names; the other names of a tied weight go into the
/// file's metadata, alias to name.
void exportVariables(const plan::proto::Plan &plan, const Executor &executor, const std::string &path);

} // namespace ds::runtime
