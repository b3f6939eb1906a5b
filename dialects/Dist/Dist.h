//===- Dist.h - the dist dialect ------------------------------------------===//
#pragma once

#include "dialects/Train/Train.h"

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

/// The ShardingAttr by which a train.variable is cut from its whole.
inline constexpr llvm::StringLiteral shardingAttribute = "dist.sharding";
/// Of a train op that computes a part: further arguments of its kernel, which say where the part lies.
inline constexpr llvm::StringLiteral placeAttribute = "dist.place";

/// What the ranks along an axis of the mesh hold of a tensor: pieces of dimension `dim` or, without one, terms of a
/// sum. Where the dimension has several `runs` end to end, as q, k and v in one weight, a piece has its part of each.
struct AxisPlacement {
  mlir::StringAttr axis;
  std::optional<int64_t> dim;
  int64_t runs = 1; // of equal length

  bool operator==(const AxisPlacement &) const = default;
  friend llvm::hash_code hash_value(const AxisPlacement &placement) {
    return llvm::hash_combine(placement.axis, placement.dim.value_or(-1), placement.runs);
  }
};

} // namespace ds::dist

#include "dialects/Dist/DistDialect.h.inc"
#include "dialects/Dist/DistEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttributes.h.inc"
#include "dialects/Dist/DistInterfaces.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Dist/DistTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.h.inc"

namespace ds::dist {

/// `error`, which names `declaration`, with a note where that stands; without one if it is null.
mlir::InFlightDiagnostic &&withDeclaration(mlir::InFlightDiagnostic &&error, mlir::Operation *declaration);

/// The types that a collective over `ranks` makes of its inputs (collective_c2, c3), or a failure after a diagnostic.
llvm::FailureOr<llvm::SmallVector<mlir::Type>> resultTypes(CollectiveOpInterface op, int64_t ranks);

} // namespace ds::dist
