//===- Bisect.h - ds-run --bisect -----------------------------------------===//
#pragma once

#include "tools/ds-run/Arguments.h"

namespace ds::run {

/// Prints the first tensor on which the plans differ, or that there is none. Returns the exit code: 1 where they
/// differ. Throws ds::Error.
int bisect(const Arguments &arguments);

} // namespace ds::run
