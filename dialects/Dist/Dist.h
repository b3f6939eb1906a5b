//===- Dist.h - the dist dialect ------------------------------------------===//
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace ds::dist {

/// What reads and writes of values act on, so that they keep their order.
struct ValueResource : public mlir::SideEffects::Resource::Base<ValueResource> {
  llvm::StringRef getName() final { return "dist.value"; }
};

} // namespace ds::dist

#include "dialects/Dist/DistDialect.h.inc"
#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.h.inc"
