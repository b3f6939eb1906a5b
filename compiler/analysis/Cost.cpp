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
