//===- Passes.h - what leaves device memory until it is needed again ------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <cstdint>
#include <memory>

namespace ds {

/// Module attribute: {values = ["NAME", ...], bytes = array<i64: ...>}, what left by the last rule of
/// ds-offload-activations, if that takes all there is: what is away longest first.
inline constexpr llvm::StringLiteral leftAttribute = "dist.left";

#define GEN_PASS_DECL
#include "compiler/passes/offload/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/offload/Passes.h.inc"

} // namespace ds
