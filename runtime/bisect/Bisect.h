//===- Bisect.h - the first tensor on which two plans differ --------------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "runtime/session/Training.h"

#include <atomic>
#include <string>

namespace ds::runtime {

struct BisectResult {
  bool differs = false;
  std::string text; ///< for people, with a newline at the end
  std::string note; ///< what may differ rightly; empty: nothing
};

/// Runs plan A, then plan B, all ranks of each in this process, and compares what their commands write, tensor by
/// tensor of the reference program (docs/bisect.md). Where they differ, both run once more for the bytes of that
/// tensor. `options` says how they run; its plan is not read. Throws ds::Error.
BisectResult bisect(const std::string &pathA, const std::string &pathB, const TrainingOptions &options,
                    const kernels::KernelRegistry &kernels, const std::atomic<bool> &stop);

} // namespace ds::runtime
