//===- Passes.h - tensors cut over the ranks of axis tensor ----------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace ds {

#define GEN_PASS_DECL
#include "compiler/passes/tensor/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/tensor/Passes.h.inc"

} // namespace ds
