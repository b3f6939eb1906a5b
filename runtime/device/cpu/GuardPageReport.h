//===- GuardPageReport.h - stray accesses as errors -----------------------===//
#pragma once

namespace ds::runtime {

/// From now on an access to a guard page of a CpuArena ends the process with one line on stderr that names the arena,
/// and exit code 1. Other faults keep what they did before.
void reportGuardPageHits();

} // namespace ds::runtime
