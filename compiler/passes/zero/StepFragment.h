//===- StepFragment.h - what a step computes once, before all micro-batches ---===//
#pragma once

#include "dialects/Dist/Dist.h"

#include <cstdint>

namespace ds {

/// Returns the fragment of phase gather of a forward's stage, which every program that calls the forward calls once,
/// first; makes it where there is none yet. `stages`: of the module.
dist::FragmentOp stepFragment(dist::FragmentOp forward, int64_t stages, mlir::SymbolTable &symbols);

} // namespace ds
