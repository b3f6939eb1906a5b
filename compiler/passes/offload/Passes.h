//===- Passes.h - what leaves device memory until it is needed again ------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <cstdint>
#include <memory>

namespace ds {

#define GEN_PASS_DECL
#include "compiler/passes/offload/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/offload/Passes.h.inc"

} // namespace ds
