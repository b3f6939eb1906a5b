//===- Mesh.cpp - what passes ask of the mesh -------------------------------===//
#include "dialects/Dist/Mesh.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ds::dist;

LogicalResult MeshOp::verify() {
  if (getAxes().size() != getSizes().size()) // mesh_c1
    return emitOpError() << "has " << getAxes().size() << " axes and " << getSizes().size() << " sizes";
  llvm::StringSet<> seen;
  for (auto [axis, size] : llvm::zip(getAxes().getAsValueRange<StringAttr>(), getSizes())) {
    if (!seen.insert(axis).second) // mesh_c1
      return emitOpError() << "axis \"" << axis << "\" stands twice";
    if (size < 1) // mesh_c2
      return emitOpError() << "axis \"" << axis << "\" has size " << size << "; it must be at least 1";
  }
  return success();
}

MeshOp ds::dist::meshOf(ModuleOp module) {
  auto meshes = module.getOps<MeshOp>();
  return meshes.empty() ? MeshOp() : *meshes.begin();
}

InFlightDiagnostic &&ds::dist::withMesh(InFlightDiagnostic &&error, MeshOp mesh) {
  if (mesh)
    error.attachNote(mesh.getLoc()) << "mesh declared here";
  return std::move(error);
}

MeshOp ds::dist::requireMesh(ModuleOp module) {
  MeshOp mesh = meshOf(module);
  if (!mesh)
    module.emitError("has no dist.mesh; ds-declare-mesh makes it");
  return mesh;
}

std::optional<int64_t> ds::dist::axisIndex(MeshOp mesh, StringRef axis) {
  for (auto [index, name] : llvm::enumerate(mesh.getAxes().getAsValueRange<StringAttr>()))
    if (name == axis)
      return int64_t(index);
  return std::nullopt;
}

int64_t ds::dist::axisSize(MeshOp mesh, StringRef axis) {
  const std::optional<int64_t> index = axisIndex(mesh, axis);
  return index ? mesh.getSizes()[size_t(*index)] : 1;
}

SmallVector<int64_t> ds::dist::ranksAt(MeshOp mesh, StringRef axis, int64_t coordinate) {
  const int64_t size = axisSize(mesh, axis);
  int64_t outer = 1, inner = 1; // products of the sizes before and behind the axis
  const int64_t index = axisIndex(mesh, axis).value_or(0);
  for (auto [number, other] : llvm::enumerate(mesh.getSizes()))
    (int64_t(number) < index ? outer : inner) *= other;
  inner /= size;
  SmallVector<int64_t> ranks;
  for (int64_t block = 0; block < outer; ++block) {
    const int64_t first = (block * size + coordinate) * inner;
    if (!ranks.empty() && ranks.back() == first - 1) // an axis of one coordinate
      ranks.back() = first + inner - 1;
    else
      ranks.append({first, first + inner - 1});
  }
  return ranks;
}
