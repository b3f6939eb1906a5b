//===- Runnable.h - whether ds-run can run a plan -------------------------===//
#pragma once

#include "compiler/driver/Compile.h"

#include <string>

namespace ds::driver {

/// Why ds-run has no kernels for the device of the plan's machine; empty where it has.
std::string whyNoKernels(const plan::proto::Plan &plan);

/// Throws ds::Error for a plan of the request whose device is older than ds-run's kernels, or that the machine cannot
/// hold; then with changes that need less, if they are soon found.
void requireRunnable(const CompileRequest &request, const plan::proto::Plan &plan);

} // namespace ds::driver
