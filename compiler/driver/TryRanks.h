//===- TryRanks.h - would a model fit on so many ranks --------------------===//
#pragma once

#include "compiler/driver/Compile.h"
#include "compiler/report/Fit.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ds::driver {

/// What `ds-opt check` does: plans the request for each number of ranks, keeps no plan, and says what became of each.
/// A configuration or model that is refused is an answer, not an error, and a refused configuration has the plan of
/// what is left without the keys that were refused, if that is one; the machine's device need not be one that ds-run
/// has. Throws ds::Error where the request itself makes no sense, as for a machine that does not exist.
std::vector<report::FitCase> tryRanks(const CompileRequest &request, std::span<const int64_t> ranks);

/// Where none of the cases fits: with how many ranks more the request would, and with how many if it took the settings
/// that would help. Nothing is tried that a case has answered.
std::vector<report::Trial> tryFurther(const CompileRequest &request, std::span<const report::FitCase> cases);

} // namespace ds::driver
