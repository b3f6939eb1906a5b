//===- Commands.h - the commands of ds-opt --------------------------------===//
#pragma once

namespace ds::tool {

/// Whether the arguments are for runCommand: a command, its flags, or a word that is no file; the rest is for mlir-opt.
bool isCommand(int argc, char **argv);

/// Runs it; returns the exit code of docs: 0 done, 1 refused, 2 wrong usage, 4 a fault of the compiler.
int runCommand(int argc, char **argv);

} // namespace ds::tool
