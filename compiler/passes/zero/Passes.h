//===- Passes.h - state and gradients shared out over the data axis ------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace ds {

/// A limit that limits nothing.
inline constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

#define GEN_PASS_DECL
#include "compiler/passes/zero/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/zero/Passes.h.inc"

} // namespace ds
