//===- Passes.h - from dist to commands on buffers at offsets ------------===//
#pragma once

#include "kernels/Device.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace ds {

#define GEN_PASS_DECL
#include "compiler/passes/plan/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/plan/Passes.h.inc"

} // namespace ds
