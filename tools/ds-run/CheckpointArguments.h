//===- CheckpointArguments.h - flags of ds-run checkpoint and export ------===//
#pragma once

#include "tools/ds-run/Arguments.h"

#include <CLI/CLI.hpp>

namespace ds::run {

/// Adds the subcommands `checkpoint` and `export`.
void addCheckpointCommands(CLI::App &app, Arguments &arguments);

/// Whether one of the two was given; then the command is set. Throws UsageError.
bool tookCheckpointCommand(const CLI::App &app, Arguments &arguments);

} // namespace ds::run
