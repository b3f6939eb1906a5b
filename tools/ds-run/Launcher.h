//===- Launcher.h - mpirun, srun and torchrun -----------------------------===//
#pragma once

namespace ds::run {

/// Throws ds::Error when a launcher has started this process as one of several.
void refuseLaunchers();

} // namespace ds::run
