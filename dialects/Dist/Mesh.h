//===- Mesh.h - what passes ask of the mesh ---------------------------------===//
//
// Passes name an axis by one of these constants and ask the mesh for its size and ranks; no pass counts axes. The mesh
// is made first, by ds-declare-mesh, or written by hand.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Dist/Dist.h"

namespace ds::dist {

inline constexpr llvm::StringLiteral pipeAxis = "pipe"; ///< stages
inline constexpr llvm::StringLiteral dataAxis = "data"; ///< micro-batches, and what ZeRO shares out
inline constexpr llvm::StringLiteral expertAxis = "expert", tensorAxis = "tensor"; ///< size 1 as yet

/// The mesh of a module, or null.
MeshOp meshOf(mlir::ModuleOp module);

/// `error`, which speaks of the mesh, with a note where it stands; without one if it is null.
mlir::InFlightDiagnostic &&withMesh(mlir::InFlightDiagnostic &&error, MeshOp mesh);

/// The mesh of a module, or null after a diagnostic.
MeshOp requireMesh(mlir::ModuleOp module);

/// The number of an axis among those of the mesh; nothing where it has none of that name.
std::optional<int64_t> axisIndex(MeshOp mesh, llvm::StringRef axis);

/// The ranks along an axis; 1 where the mesh has none of that name.
int64_t axisSize(MeshOp mesh, llvm::StringRef axis);

/// The ranks at a coordinate of an axis, as dist.role writes them: pairs [first, last], ascending.
llvm::SmallVector<int64_t> ranksAt(MeshOp mesh, llvm::StringRef axis, int64_t coordinate);

} // namespace ds::dist
