//===- SelectKernels.cpp - every op of a fragment is a call of a kernel -----===//
//
// Instruction selection of the simplest kind, one op at a time: analysis/KernelSelection.h names the kernel of an op,
// its operands and its attributes, and kernels/Kernels.inc the workspace. What remains moves or names tensors
// and is no kernel's: reads, stores, reshapes, constants and the ops of dist. A constant that became part of a kernel's
// program is erased; the seed of the gradient becomes a constant.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/KernelSelection.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/plan/Passes.h"
#include "dialects/Dist/Dist.h"
#include "kernels/CallWork.h"
#include "kernels/KernelTable.h"

namespace ds {
#define GEN_PASS_DEF_SELECTKERNELS
#include "compiler/passes/plan/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Ops that no kernel computes.
bool isKept(Operation *op) {
  return isa<dist::DistDialect>(op->getDialect()) ||
         isa<train::ReadOp, train::StoreOp, train::ReshapeOp, train::ConstantOp, train::LossGradientOp>(op);
}

struct SelectKernels : ds::impl::SelectKernelsBase<SelectKernels> {
  using SelectKernelsBase::SelectKernelsBase;

  void runOnOperation() override {
    const SymbolTable symbols(getOperation());
    plainAttentions = 0;
    for (auto fragment : getOperation().getOps<dist::FragmentOp>()) {
      Block &body = fragment.getBody().front();
      for (Operation &op : llvm::make_early_inc_range(body))
        if (!isKept(&op) && failed(select(&op, symbols)))
          return signalPassFailure();
      for (Operation &op : llvm::make_early_inc_range(body))
        tidyConstant(&op);
    }
    notePlainAttention();
  }

private:
  FailureOr<KernelCall> callFor(Operation *op, const SymbolTable &symbols) {
    if (auto accumulate = dyn_cast<train::AccumulateOp>(op))
      return selectAccumulate(accumulate);
    if (auto average = dyn_cast<train::UpdateAverageOp>(op))
      return selectUpdateAverage(average);
    return selectKernel(op, symbols, {threads, device, tf32});
  }

  LogicalResult select(Operation *op, const SymbolTable &symbols) {
    FailureOr<KernelCall> call = callFor(op, symbols);
    if (failed(call))
      return failure();
    lookForPlainAttention(op->getLoc(), call->invocation());
    if (auto place = op->getAttrOfType<DictionaryAttr>(dist::placeAttribute)) {
      NamedAttrList attributes(call->attributes);
      for (NamedAttribute argument : place)
        attributes.set(argument.getName(), argument.getValue());
      call->attributes.assign(attributes.begin(), attributes.end());
    }
    OpBuilder builder(op);
    SmallVector<Value> inputs;
    SmallVector<int32_t> accesses;
    SmallVector<Attribute> types, variables;
    for (const KernelOperand &operand : call->operands) {
      if (operand.value && operand.access == plan::Access::Read)
        inputs.push_back(operand.value);
      accesses.push_back(int32_t(operand.access));
      types.push_back(TypeAttr::get(operand.type));
      variables.push_back(operand.variable ? Attribute(FlatSymbolRefAttr::get(operand.variable))
                                           : builder.getUnitAttr());
    }
    if (llvm::all_of(variables, llvm::IsaPred<UnitAttr>))
      variables.clear();
    auto kernel = dist::KernelOp::create(
        builder, op->getLoc(), op->getResultTypes(), builder.getStringAttr(call->kernel),
        builder.getDictionaryAttr(call->attributes), inputs, builder.getDenseI32ArrayAttr(accesses),
        builder.getArrayAttr(types), builder.getArrayAttr(variables), workspaceOf(*call, builder));
    if (Attribute reference = op->getAttr(referenceAttribute))
      kernel->setAttr(referenceAttribute, reference);
    op->replaceAllUsesWith(kernel);
    op->erase();
    return success();
  }

  void lookForPlainAttention(Location location, const kernels::Invocation &call) {
    if (device != kernels::Device::Cuda || !kernels::isAttention(call.kernel) ||
        !isNarrowFloat(call.operands.front().dtype))
      return;
    const std::string why = kernels::whyPlainAttention(call.kernel, kernels::CallTypes(call));
    if (!why.empty() && plainAttentions++ == 0)
      firstPlain = {location, "kernel '" + call.kernel + "' will be run by our own slower kernel: " + why};
  }

  /// One note for all.
  void notePlainAttention() {
    if (plainAttentions == 0)
      return;
    InFlightDiagnostic note = emitRemark(Location(firstPlain.first)) << firstPlain.second;
    if (plainAttentions > 1)
      note << "; so will " << plainAttentions - 1 << " more of attention";
  }

  int plainAttentions = 0;
  std::pair<LocationAttr, std::string> firstPlain;

  /// Null for a kernel that takes none.
  IntegerAttr workspaceOf(const KernelCall &call, Builder &builder) {
    const kernels::WorkspaceLimits limits{int(threads), workspaceBytesPerThread, device};
    const int64_t bytes = kernels::workspaceBytes(call.invocation(), limits);
    return bytes > 0 ? builder.getI64IntegerAttr(bytes) : IntegerAttr();
  }

  static void tidyConstant(Operation *op) {
    if (isa<train::ConstantOp, train::LossGradientOp>(op) && op->use_empty())
      return op->erase();
    auto seed = dyn_cast<train::LossGradientOp>(op);
    if (!seed)
      return;
    auto type = cast<RankedTensorType>(seed.getType());
    APFloat scale = seed.getScale();
    bool inexact;
    scale.convert(cast<FloatType>(type.getElementType()).getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
    OpBuilder builder(op);
    op->replaceAllUsesWith(train::ConstantOp::create(builder, op->getLoc(), DenseElementsAttr::get(type, scale)));
    op->erase();
  }
};

} // namespace
