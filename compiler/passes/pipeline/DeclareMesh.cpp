//===- DeclareMesh.cpp - lay the ranks out as a grid with named axes ----------===//
//
// One dist.mesh with four axes, the slowest first, as Megatron-LM (arXiv 2104.04473) lays ranks out: pipe, data,
// expert, tensor. Ranks that talk most stand nearest to each other. An axis that nobody uses has size 1.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/pipeline/Passes.h"
#include "dialects/Dist/Mesh.h"

#include "mlir/IR/Builders.h"

namespace ds {
#define GEN_PASS_DEF_DECLAREMESH
#include "compiler/passes/pipeline/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct DeclareMesh : ds::impl::DeclareMeshBase<DeclareMesh> {
  using DeclareMeshBase::DeclareMeshBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const std::pair<StringRef, int64_t> axes[] = {
        {dist::pipeAxis, pipe}, {dist::dataAxis, data}, {dist::expertAxis, expert}, {dist::tensorAxis, tensor}};
    for (auto [axis, size] : axes)
      if (size < 1) {
        module.emitError() << axis << " is " << size << "; it must be at least 1";
        return signalPassFailure();
      }
    if (dist::MeshOp written = dist::meshOf(module)) {
      for (auto [axis, size] : axes)
        if (dist::axisSize(written, axis) != size) {
          written.emitOpError() << "has " << dist::axisSize(written, axis) << " ranks along axis \"" << axis
                                << "\", and " << size << " were asked for";
          return signalPassFailure();
        }
      return;
    }
    auto builder = OpBuilder::atBlockBegin(module.getBody());
    SmallVector<StringRef> names;
    SmallVector<int64_t> sizes;
    for (auto [axis, size] : axes) {
      names.push_back(axis);
      sizes.push_back(size);
    }
    dist::MeshOp::create(builder, module.getLoc(), "mesh", builder.getStrArrayAttr(names), sizes);
  }
};

} // namespace
