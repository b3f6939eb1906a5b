//===- Commands.h - the commands of ds-opt --------------------------------===//
#pragma once

namespace ds::tool {

/// Whether the first argument names a command (or asks for their list).
bool isCommand(int argc, char **argv);

/// Runs it; returns the exit code of docs: 0 done, 1 refused, 2 wrong usage.
int runCommand(int argc, char **argv);

} // namespace ds::tool
