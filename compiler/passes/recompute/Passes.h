//===- Passes.h - what the backward computes again instead of keeping it -===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace ds {

#define GEN_PASS_DECL
#include "compiler/passes/recompute/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/recompute/Passes.h.inc"

} // namespace ds
