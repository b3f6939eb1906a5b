//===- Cost.cpp - how long ops take, roughly ----------------------------------===//
#include "compiler/analysis/Cost.h"

#include "compiler/analysis/KernelSelection.h"
#include "core/CostModel.h"
#include "kernels/CallWork.h"

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
  return rates && rates.size() == 8
             ? Rates{rates[0], rates[1], rates[2], rates[3], rates[4], rates[5], rates[6], rates[7]}
             : Rates{};
}

/// Of a kernel that reads and writes these. The rates say whether products of float32 are TF32.
Work workOf(const kernels::KernelRow *row, ArrayRef<kernels::TensorType> reads, ArrayRef<kernels::TensorType> writes,
            bool isCausal, double bytes) {
  if (!row)
    return {.bytes = bytes};
  const unsigned bits = reads.empty() ? 32 : unsigned(8 * byteSize(reads.front().dtype));
  return kernels::workOf(*row, kernels::CallTypes(*row, reads, writes, isCausal), bytes, bits, false);
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
  return seconds(workOf(kernels::findKernel(op->getName().stripDialect()), tensorsOf(op->getOperandTypes()),
                        tensorsOf(op->getResultTypes()), op->hasAttr("causal"), moved),
                 ratesFor(op));
}

/// What a command of a plan that is no copy between memories does.
static Work workOf(plan::CommandOpInterface command) {
  std::vector<kernels::TensorType> reads, writes;
  double moved = 0, again = 0;
  for (auto [index, buffer] : llvm::enumerate(command.getBuffers())) {
    const RankedTensorType type = command.getTensor(unsigned(index));
    const plan::Access access = command.getAccess(unsigned(index));
    if (access == plan::Access::Scratch)
      continue;
    moved += bytesOf(type);
    again += access == plan::Access::ReadWrite ? bytesOf(type) : 0;
    (access == plan::Access::Write ? writes : reads)
        .push_back({dtypeOf(type), Shape(type.getShape().begin(), type.getShape().end())});
  }
  auto kernel = dyn_cast<plan::KernelOp>(command.getOperation());
  const auto causal = kernel ? kernel.getArguments().getAs<IntegerAttr>("causal") : IntegerAttr();
  Work work = workOf(kernel ? kernels::findKernel(kernel.getKernel()) : nullptr, reads, writes,
                     causal && causal.getInt() == 1, moved + again);
  work.bytesAgain = again;
  return work;
}

double ds::seconds(plan::CommandOpInterface command) {
  return seconds(workOf(command), ratesFor(command.getOperation()));
}

double ds::secondsOnHost(plan::CommandOpInterface command) {
  const LinkSpeed link = linkSpeed(command, "device-host");
  return seconds(workOf(command), ratesOfHost(ratesFor(command.getOperation()), link.bytesPerSecond, link.latency));
}

LinkSpeed ds::linkSpeed(Operation *op, StringRef between) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto links = module->getAttrOfType<DictionaryAttr>(linksAttribute);
  auto link = links ? links.getAs<DenseF64ArrayAttr>(between) : DenseF64ArrayAttr();
  return link && link.size() == 2 ? LinkSpeed{link[0], link[1]} : LinkSpeed{};
}
