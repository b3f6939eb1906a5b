//===- Passes.h - what is computed: differentiation, precision, optimizers ===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace ds {

#define GEN_PASS_DECL
#include "compiler/passes/train/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/train/Passes.h.inc"

} // namespace ds
