//===- PassOptions.h - what the passes are asked for ----------------------===//
#pragma once

#include "compiler/config/Config.h"
#include "compiler/config/Machine.h"
#include "compiler/driver/Compile.h"
#include "compiler/passes/Passes.h"

#include <cstdint>
#include <vector>

namespace ds::driver {

/// Device memory that a rank may fill, in bytes; 0: unknown.
int64_t roomOf(const config::Machine &machine);

/// By a configuration, for a machine. Throws ds::Error for a pass of --without that cannot be left out.
CompileOptions compileOptions(const CompileRequest &request, const config::Config &config,
                              const config::Machine &machine);

/// What deepstatic.offload "auto" tries: nothing but what other keys ask for, and then what costs more and more.
std::vector<OffloadOptions> offloadChoices(const CompileOptions &options);

} // namespace ds::driver
