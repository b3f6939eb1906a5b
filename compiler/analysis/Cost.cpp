//===- Cost.cpp - how long ops take, roughly ----------------------------------===//
#include "compiler/analysis/Cost.h"

#include "compiler/analysis/KernelSelection.h"
#include "core/CostModel.h"

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

/// Of the module that an op is in.
Rates ratesFor(Operation *op) {
  const auto rates = op->getParentOfType<ModuleOp>()->getAttrOfType<DenseF64ArrayAttr>(ratesAttribute);
  return rates && rates.size() == 6 ? Rates{rates[0], rates[1], rates[2], rates[3], rates[4], rates[5]} : Rates{};
}

/// Of a kernel that reads and writes these. The rates say whether products of float32 are TF32.
double secondsOf(const kernels::KernelRow *row, ArrayRef<kernels::TensorType> reads,
                 ArrayRef<kernels::TensorType> writes, double bytes, const Rates &rates) {
  Work work{.bytes = bytes};
  if (row) {
    const kernels::CallTypes call(*row, reads, writes);
    work.flops = kernels::flopsOf(row->name, call);
    work.bytes -= kernels::untouchedBytes(row->name, call);
    const unsigned bits = reads.empty() ? 32 : unsigned(8 * byteSize(reads.front().dtype));
    work.kind = workKind(kernels::isAttention(row->name), bits, false);
  }
  return seconds(work, rates);
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
  return secondsOf(kernels::findKernel(op->getName().stripDialect()), tensorsOf(op->getOperandTypes()),
                   tensorsOf(op->getResultTypes()), moved, ratesFor(op));
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
  return secondsOf(kernel ? kernels::findKernel(kernel.getKernel()) : nullptr, reads, writes, moved,
                   ratesFor(command.getOperation()));
}

LinkSpeed ds::linkSpeed(Operation *op, StringRef between) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto links = module->getAttrOfType<DictionaryAttr>(linksAttribute);
  auto link = links ? links.getAs<DenseF64ArrayAttr>(between) : DenseF64ArrayAttr();
  return link && link.size() == 2 ? LinkSpeed{link[0], link[1]} : LinkSpeed{};
}
