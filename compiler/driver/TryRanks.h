//===- TryRanks.h - would a model fit on so many ranks --------------------===//
#pragma once

#include "compiler/driver/Compile.h"
#include "compiler/report/Fit.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ds::driver {

/// What `ds-opt check` does: plans the request for each number of ranks, keeps no plan, and says what became of each.
/// A configuration or model that is refused is an answer, not an error; the machine's device need not be one that
/// ds-run has. Throws ds::Error where the request itself makes no sense, as for a machine that does not exist.
std::vector<report::FitCase> tryRanks(const CompileRequest &request, std::span<const int64_t> ranks);

} // namespace ds::driver
