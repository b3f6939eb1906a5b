//===- Launcher.h - mpirun, srun and torchrun -----------------------------===//
#pragma once

#include "runtime/session/Training.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ds::run {

/// What the environment says about processes that mpirun, srun or torchrun has started; nothing where this one was
/// started by itself. Throws ds::Error for a launcher whose processes could not talk to each other: srun without a
/// process management interface. `arguments`: ds-run's own, for a line to try.
std::optional<runtime::Launch> detectLauncher(const std::string &arguments);

/// How many processes the launcher that started this one says that it started; 1 without one.
uint64_t processesStarted();

} // namespace ds::run
