//===- KernelSelection.cpp - which kernel runs an op ------------------------===//
#include "compiler/analysis/KernelSelection.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ds;
using namespace ds::train;

void KernelCall::read(Value value) {
  operands.push_back({value, {}, cast<RankedTensorType>(value.getType()), plan::Access::Read});
}
void KernelCall::write(Value value) {
  operands.push_back({value, {}, cast<RankedTensorType>(value.getType()), plan::Access::Write});
}
void KernelCall::variable(StringAttr name, RankedTensorType type, plan::Access access) {
  operands.push_back({{}, name, type, access});
}

namespace {

/// Collects operands and attributes in the order of KernelSignatures.h.
class Selector {
public:
  Selector(Operation *op, const SymbolTable &symbols) : builder_(op->getContext()), symbols_(symbols) {}

  KernelCall call(StringRef kernel, ValueRange reads, ValueRange writes) {
    KernelCall call{kernel.str(), {}, std::move(attributes_)};
    for (Value value : reads)
      call.read(value);
    for (Value value : writes)
      call.write(value);
    return call;
  }
  Selector &with(StringRef name, Attribute value) {
    attributes_.push_back(builder_.getNamedAttr(name, value));
    return *this;
  }
  Selector &with(StringRef name, int64_t value) { return with(name, builder_.getI64IntegerAttr(value)); }
  Selector &with(StringRef name, ArrayRef<int64_t> values) { return with(name, builder_.getDenseI64ArrayAttr(values)); }
  Selector &with(StringRef name, const APFloat &value) {
    return with(name, builder_.getF64FloatAttr(value.convertToDouble()));
  }
  RankedTensorType typeOf(FlatSymbolRefAttr name) {
    return cast<StateOpInterface>(symbols_.lookup(name.getAttr())).getStateType();
  }

  /// Axis and plain ops: kernel named like the op, operands then results.
  KernelCall plain(Operation *op) { return call(op->getName().stripDialect(), op->getOperands(), op->getResults()); }

  KernelCall reduction(Operation *op, ArrayRef<int64_t> axes) { return with("axes", axes).plain(op); }

  KernelCall globalNorm(GlobalNormOp op) {
    SmallVector<int64_t> blocks(op.getBlocks());
    if (blocks.empty())
      blocks.assign(op.getPartials().size(), 1024);
    return with("blocks", blocks).plain(op);
  }

  KernelCall adamw(AdamWOp op) {
    with("beta1", op.getBeta1()).with("beta2", op.getBeta2()).with("epsilon", op.getEpsilon());
    with("weight_decay", op.getWeightDecay()).with("adam_w_mode", int64_t(op.getDecoupled()));
    KernelCall result = call("adamw", {}, {});
    const RankedTensorType type = typeOf(op.getParameterAttr());
    result.variable(op.getParameterAttr().getAttr(), type, plan::Access::ReadWrite);
    result.variable(op.getGradientAttr().getAttr(), type, plan::Access::Read);
    result.variable(op.getFirstMomentAttr().getAttr(), type, plan::Access::ReadWrite);
    result.variable(op.getSecondMomentAttr().getAttr(), type, plan::Access::ReadWrite);
    for (Value scalar : op->getOperands())
      result.read(scalar);
    return result;
  }

  KernelCall sgd(SgdOp op) {
    with("momentum", op.getMomentum()).with("weight_decay", op.getWeightDecay());
    with("nesterov", int64_t(op.getNesterov()));
    KernelCall result = call("sgd", {}, {});
    const RankedTensorType type = typeOf(op.getParameterAttr());
    result.variable(op.getParameterAttr().getAttr(), type, plan::Access::ReadWrite);
    result.variable(op.getGradientAttr().getAttr(), type, plan::Access::Read);
    if (FlatSymbolRefAttr buffer = op.getMomentumBufferAttr())
      result.variable(buffer.getAttr(), type, plan::Access::ReadWrite);
    for (Value scalar : op->getOperands())
      result.read(scalar);
    return result;
  }

  KernelCall adagrad(AdagradOp op) {
    with("epsilon", op.getEpsilon()).with("weight_decay", op.getWeightDecay()).with("lr_decay", op.getLrDecay());
    KernelCall result = call("adagrad", {}, {});
    const RankedTensorType type = typeOf(op.getParameterAttr());
    result.variable(op.getParameterAttr().getAttr(), type, plan::Access::ReadWrite);
    result.variable(op.getGradientAttr().getAttr(), type, plan::Access::Read);
    result.variable(op.getSquareSumAttr().getAttr(), type, plan::Access::ReadWrite);
    for (Value scalar : op->getOperands())
      result.read(scalar);
    return result;
  }

  KernelCall learningRate(LearningRateOp op) {
    with("schedule", op.getScheduleAttr());
    for (NamedAttribute parameter : op.getParameters())
      with(parameter.getName(), parameter.getValue());
    return call("learning_rate", op->getOperands(), op->getResults());
  }

  KernelCall increment(IncrementOp op) {
    KernelCall result = call("increment", {}, {});
    result.variable(op.getVariableAttr().getAttr(), typeOf(op.getVariableAttr()), plan::Access::ReadWrite);
    return result;
  }

  /// layer_norm and its gradient see rows of as many columns as `scale` has elements; `wide` are the operands that are
  /// shaped like the input.
  KernelCall rowWise(Operation *op, Value scale, ArrayRef<unsigned> wide) {
    const int64_t columns = cast<RankedTensorType>(scale.getType()).getNumElements();
    KernelCall result = plain(op);
    for (auto [index, operand] : llvm::enumerate(result.operands)) {
      const int64_t count = operand.type.getNumElements();
      operand.type = llvm::is_contained(wide, index) ? operand.type.clone({columns ? count / columns : 0, columns})
                                                     : operand.type.clone({count});
    }
    return result;
  }

  /// How a window moves; `high` follows from the shapes.
  template <typename OpTy> Selector &window(OpTy op) {
    return with("strides", op.getStrides()).with("dilations", op.getDilations()).with("low", op.getLow());
  }

  template <typename OpTy> KernelCall pool(OpTy op) { return window(op).with("window", op.getWindow()).plain(op); }

  KernelCall crossEntropy(Operation *op, uint64_t ignoreIndex, Reduction reduction) {
    with("ignore_index", int64_t(ignoreIndex));
    with("reduction", builder_.getStringAttr(stringifyReduction(reduction)));
    return plain(op);
  }

private:
  Builder builder_;
  const SymbolTable &symbols_;
  SmallVector<NamedAttribute> attributes_;
};

} // namespace

FailureOr<KernelCall> ds::selectKernel(Operation *op, const SymbolTable &symbols, const KernelTarget &target) {
  if (op->hasTrait<Elementwise>() || isa<FusedOp, BroadcastOp>(op))
    return selectElementwise(op);
  Selector select(op, symbols);
  using Result = FailureOr<KernelCall>;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](MatmulOp o) {
        select.with("trans_a", int64_t(o.getTransposeLhs())).with("trans_b", int64_t(o.getTransposeRhs()));
        select.with("pieces", target.workers);
        if (target.device == kernels::Device::Cuda && target.tf32 && getElementTypeOrSelf(o.getType()).isF32())
          select.with("tf32", int64_t(1));
        return Result(select.with("bias", int64_t(bool(o.getBias()))).plain(op));
      })
      .Case<AttentionOp, AttentionGradOp>([&](auto o) {
        select.with("scale", o.getScale()).with("causal", int64_t(o.getCausal()));
        return Result(select.with("mask", int64_t(bool(o.getMask()))).plain(op));
      })
      .Case([&](TransposeOp o) { return Result(select.with("perm", o.getPermutation()).plain(op)); })
      .Case([&](ReduceSumOp o) { return Result(select.reduction(op, o.getAxes())); })
      .Case([&](ReduceMeanOp o) { return Result(select.reduction(op, o.getAxes())); })
      .Case([&](ReduceMaxOp o) { return Result(select.reduction(op, o.getAxes())); })
      .Case<SoftmaxOp, SoftmaxGradOp, LogSoftmaxOp, LogSoftmaxGradOp, GatherOp, GatherGradOp, ConcatOp,
            GatherElementsOp>([&](auto o) { return Result(select.with("axis", int64_t(o.getAxis())).plain(op)); })
      .Case([&](ScatterElementsOp o) {
        select.with("reduction", StringAttr::get(op->getContext(), stringifyScatterReduction(o.getReduction())));
        return Result(select.with("axis", int64_t(o.getAxis())).plain(op));
      })
      .Case([&](ArgMaxOp o) {
        return Result(select.with("axis", int64_t(o.getAxis())).with("last", int64_t(o.getLast())).plain(op));
      })
      .Case([&](TopKOp o) { return Result(select.with("smallest", int64_t(o.getSmallest())).plain(op)); })
      .Case([&](CumSumOp o) {
        select.with("exclusive", int64_t(o.getExclusive())).with("reverse", int64_t(o.getReverse()));
        return Result(select.with("axis", int64_t(o.getAxis())).plain(op));
      })
      .Case([&](LayerNormOp o) {
        return Result(select.with("epsilon", o.getEpsilon()).rowWise(op, o.getScale(), {0, 3}));
      })
      .Case([&](LayerNormGradOp o) { return Result(select.rowWise(op, o.getScale(), {0, 1, 5})); })
      .Case(
          [&](RmsNormOp o) { return Result(select.with("epsilon", o.getEpsilon()).rowWise(op, o.getScale(), {0, 2})); })
      .Case([&](RmsNormGradOp o) { return Result(select.rowWise(op, o.getScale(), {0, 1, 4})); })
      .Case([&](BatchNormOp o) { return Result(select.with("epsilon", o.getEpsilon()).plain(op)); })
      .Case([&](ConvOp o) {
        select.window(o).with("groups", int64_t(o.getGroups())).with("bias", int64_t(bool(o.getBias())));
        return Result(select.plain(op));
      })
      .Case<ConvInputGradOp, ConvWeightGradOp>(
          [&](auto o) { return Result(select.window(o).with("groups", int64_t(o.getGroups())).plain(op)); })
      .Case<MaxPoolOp, MaxPoolGradOp, AveragePoolOp, AveragePoolGradOp>([&](auto o) { return Result(select.pool(o)); })
      .Case(
          [&](SliceOp o) { return Result(select.with("starts", o.getStarts()).with("steps", o.getSteps()).plain(op)); })
      .Case([&](PadOp o) {
        select.with("low", o.getLow()).with("interior", o.getInterior());
        return Result(select.with("value", o.getValue()).plain(op));
      })
      .Case<CrossEntropyOp, CrossEntropyGradOp>(
          [&](auto o) { return Result(select.crossEntropy(op, o.getIgnoreIndex(), o.getReduction())); })
      .Case([&](DropoutOp o) {
        return Result(select.with("ratio", o.getRatio()).with("op_id", int64_t(o.getOpId())).plain(op));
      })
      .Case([&](BatchNormGradOp) { return Result(select.plain(op)); })
      .Case([&](BlockSumSquaresOp o) { return Result(select.with("block", int64_t(o.getBlock())).plain(op)); })
      .Case([&](GlobalNormOp o) { return Result(select.globalNorm(o)); })
      .Case([&](ClipFactorOp o) { return Result(select.with("max_norm", o.getMaxNorm()).plain(op)); })
      .Case([&](LearningRateOp o) { return Result(select.learningRate(o)); })
      .Case([&](IncrementOp o) { return Result(select.increment(o)); })
      .Case([&](AdamWOp o) { return Result(select.adamw(o)); })
      .Case([&](SgdOp o) { return Result(select.sgd(o)); })
      .Case([&](AdagradOp o) { return Result(select.adagrad(o)); })
      .Default([](Operation *o) {
        o->emitOpError("has no kernel");
        return Result(failure());
      });
}
