//===- Passes.h - what one kernel does at once ----------------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace ds {

#define GEN_PASS_DECL
#include "compiler/passes/fusion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/fusion/Passes.h.inc"

} // namespace ds
