//===- Cost.cpp - how long ops take, roughly ----------------------------------===//
#include "compiler/analysis/Cost.h"

#include "compiler/analysis/KernelSelection.h"
#include "kernels/CostModel.h"

using namespace mlir;
using namespace ds;

namespace {

double bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return double(tensor.getNumElements()) * tensor.getElementTypeBitWidth() / 8;
}

std::vector<kernels::TensorType> tensorsOf(TypeRange types) {
  std::vector<kernels::TensorType> tensors;
  for (Type type : types) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
    tensors.push_back({dtypeOf(type), Shape(shape.begin(), shape.end())});
  }
  return tensors;
}

/// By the kernel of the op's name, if there is one.
double flopsOf(Operation *op) {
  const kernels::KernelRow *kernel = kernels::findKernel(op->getName().stripDialect());
  if (!kernel)
    return 0;
  const auto reads = tensorsOf(op->getOperandTypes()), writes = tensorsOf(op->getResultTypes());
  return kernels::flopsOf(kernel->name, kernels::CallTypes(*kernel, reads, writes));
}

} // namespace

double ds::seconds(Operation *op) {
  if (isa<train::ReadOp, train::ReshapeOp, train::ConstantOp, train::LossGradientOp>(op))
    return 0;
  double moved = 0;
  for (Type type : op->getOperandTypes())
    moved += bytesOf(type);
  for (Type type : op->getResultTypes())
    moved += bytesOf(type);
  return kernels::seconds(flopsOf(op), moved);
}

double ds::seconds(plan::CommandOpInterface command) {
  std::vector<kernels::TensorType> reads, writes;
  double moved = 0;
  for (auto [index, buffer] : llvm::enumerate(command.getBuffers())) {
    const RankedTensorType type = command.getTensor(unsigned(index));
    const plan::Access access = command.getAccess(unsigned(index));
    if (access == plan::Access::Scratch)
      continue;
    moved += bytesOf(type);
    (access == plan::Access::Write ? writes : reads)
        .push_back({dtypeOf(type), Shape(type.getShape().begin(), type.getShape().end())});
  }
  auto kernel = dyn_cast<plan::KernelOp>(command.getOperation());
  const kernels::KernelRow *row = kernel ? kernels::findKernel(kernel.getKernel()) : nullptr;
  return kernels::seconds(row ? kernels::flopsOf(row->name, kernels::CallTypes(*row, reads, writes)) : 0, moved);
}

LinkSpeed ds::linkSpeed(Operation *op, StringRef between) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto links = module->getAttrOfType<DictionaryAttr>(linksAttribute);
  auto link = links ? links.getAs<DenseF64ArrayAttr>(between) : DenseF64ArrayAttr();
  return link && link.size() == 2 ? LinkSpeed{link[0], link[1]} : LinkSpeed{};
}
