//===- KernelSelection.cpp - which kernel runs an op ------------------------===//
#include "compiler/analysis/KernelSelection.h"

#include "compiler/analysis/KernelWriter.h"
#include "core/Error.h"
#include "dialects/Dist/Dist.h"
#include "kernels/Call.h"

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

static kernels::TensorType tensorOf(RankedTensorType type) {
  return {dtypeOf(type), Shape(type.getShape().begin(), type.getShape().end())};
}

static kernels::Attributes attributesOf(ArrayRef<NamedAttribute> attributes) {
  kernels::Attributes result;
  for (NamedAttribute attribute : attributes) {
    kernels::AttributeValue &value = result[attribute.getName().str()];
    llvm::TypeSwitch<Attribute>(attribute.getValue())
        .Case([&](IntegerAttr a) { value = a.getInt(); })
        .Case([&](FloatAttr a) { value = a.getValueAsDouble(); })
        .Case([&](StringAttr a) { value = a.str(); })
        .Case([&](DenseI64ArrayAttr a) { value = std::vector<int64_t>(a.asArrayRef()); })
        .Case([&](dist::ByRankAttr a) { value = std::vector<int64_t>(a.getValues()); })
        .Case([&](DenseF64ArrayAttr a) { value = std::vector<double>(a.asArrayRef()); });
  }
  return result;
}

kernels::Invocation KernelCall::invocation() const {
  kernels::Invocation result{kernel, {}, attributesOf(attributes)};
  for (const KernelOperand &operand : operands)
    result.operands.push_back(tensorOf(operand.type));
  return result;
}

kernels::Invocation ds::invocationOf(plan::KernelOp kernel) {
  auto command = cast<plan::CommandOpInterface>(kernel.getOperation());
  kernels::Invocation result{kernel.getKernel().str(), {}, attributesOf(kernel.getArguments().getValue())};
  for (unsigned i = 0; i < command.getBuffers().size(); ++i)
    result.operands.push_back(tensorOf(command.getTensor(i)));
  return result;
}

namespace {

/// The calls of ops, one function a shape of call; the kernel is named as the op.
class Selector {
public:
  Selector(const SymbolTable &symbols, const KernelTarget &target) : symbols_(symbols), target_(target) {}

  /// Of a product alone, or of one with an epilogue.
  template <typename OpTy> KernelCall matmul(OpTy op, StringRef epilogue = {}) const {
    KernelWriter<"matmul"> call(op->getContext());
    call.with("trans_a", op.getTransA()).with("trans_b", op.getTransB()).with("pieces", target_.workers);
    if (mayRound(op.getResult().getType()))
      call.with("tf32", true);
    if constexpr (std::is_same_v<OpTy, MatmulGeluTanhGradOp>)
      call.with("bias", false);
    else
      call.with("bias", bool(op.getBias()));
    if (!epilogue.empty())
      call.with("epilogue", epilogue);
    return call.call(op);
  }

  KernelCall linearWeightGrad(LinearWeightGradOp op) const {
    auto call = writerOf(op).with("transposed", op.getTransposed()).with("pieces", target_.workers);
    if (mayRound(op.getInput().getType()))
      call.with("tf32", true);
    return call.call(op);
  }

  KernelCall quantizeFp8(QuantizeFp8Op op) const {
    auto call = writerOf(op).with("format", op.getFormat()).with("transposed", op.getTransposed());
    if (op.getBlock())
      call.with("block", *op.getBlock());
    return call.call(op);
  }

  KernelCall fp8Matmul(Fp8MatmulOp op) const {
    auto call = writerOf(op).with("a_format", op.getAFormat()).with("b_format", op.getBFormat());
    if (op.getABlock())
      call.with("a_block", *op.getABlock()).with("b_block", *op.getBBlock());
    return call.with("bias", bool(op.getBias())).with("pieces", target_.workers).call(op);
  }

  template <typename OpTy> KernelCall attention(OpTy op) const {
    auto call = writerOf(op).with("scale", op.getScale()).with("causal", op.getCausal());
    if constexpr (std::is_same_v<OpTy, AttentionOp> || std::is_same_v<OpTy, AttentionGradOp>)
      if (op.getBshd())
        call.with("bshd", true);
    return call.with("mask", bool(op.getMask())).call(op);
  }

  template <typename OpTy> KernelCall reduction(OpTy op) const {
    return writerOf(op).with("axes", op.getAxes()).call(op);
  }

  template <typename OpTy> KernelCall alongAxis(OpTy op) const {
    return writerOf(op).with("axis", int64_t(op.getAxis())).call(op);
  }

  KernelCall scatter(ScatterElementsOp op) const {
    auto call = writerOf(op).with("reduction", stringifyScatterReduction(op.getReduction()));
    return call.with("axis", int64_t(op.getAxis())).call(op);
  }

  /// A norm or its gradient.
  template <typename OpTy> KernelCall rowWise(OpTy op) const {
    auto writer = writerOf(op);
    if constexpr (std::is_same_v<OpTy, LayerNormOp> || std::is_same_v<OpTy, RmsNormOp>)
      writer.with("epsilon", op.getEpsilon());
    else if (op.getResidual())
      writer.with("residual", true);
    return inRows(op, writer.call(op));
  }

  /// A norm that adds two rows first.
  template <kernels::KernelName kernel, typename OpTy> KernelCall normOfSum(OpTy op) const {
    KernelWriter<kernel> writer(op->getContext());
    writer.with("epsilon", op.getEpsilon()).with("residual", true);
    if (op.getRounded())
      writer.with("rounded", true);
    return inRows(op, writer.call(op));
  }

  /// The kernel of a norm sees rows of as many columns as `scale` has elements.
  template <typename OpTy> static KernelCall inRows(OpTy op, KernelCall call) {
    const kernels::CallLayout layout(call.invocation());
    const int64_t columns = cast<RankedTensorType>(op.getScale().getType()).getNumElements();
    for (auto [i, operand] : llvm::enumerate(call.operands)) {
      const int64_t count = operand.type.getNumElements();
      const bool isWide = layout[i].shape == "[..., cols]";
      operand.type =
          isWide ? operand.type.clone({columns ? count / columns : 0, columns}) : operand.type.clone({count});
    }
    return call;
  }

  /// How a window moves; `high` follows from the shapes.
  template <typename OpTy> auto window(OpTy op) const {
    return writerOf(op).with("strides", op.getStrides()).with("dilations", op.getDilations()).with("low", op.getLow());
  }
  template <typename OpTy> KernelCall pool(OpTy op) const { return window(op).with("window", op.getWindow()).call(op); }
  KernelCall conv(ConvOp op) const {
    return window(op).with("groups", int64_t(op.getGroups())).with("bias", bool(op.getBias())).call(op);
  }
  template <typename OpTy> KernelCall convGrad(OpTy op) const {
    return window(op).with("groups", int64_t(op.getGroups())).call(op);
  }

  template <typename OpTy> KernelCall crossEntropy(OpTy op) const {
    auto call = writerOf(op).with("ignore_index", int64_t(op.getIgnoreIndex()));
    if (const std::optional<uint64_t> classes = op.getClasses())
      call.with("classes", int64_t(*classes));
    return call.with("reduction", stringifyReduction(op.getReduction())).call(op);
  }

  KernelCall globalNorm(GlobalNormOp op) const {
    SmallVector<int64_t> blocks(op.getBlocks());
    if (blocks.empty())
      blocks.assign(op.getPartials().size(), 1024);
    return writerOf(op).with("blocks", blocks).call(op);
  }

  KernelCall adamw(AdamWOp op) const {
    auto call = writerOf(op);
    call.with("beta1", op.getBeta1()).with("beta2", op.getBeta2()).with("epsilon", op.getEpsilon());
    call.with("weight_decay", op.getWeightDecay()).with("adam_w_mode", op.getAdamWMode());
    call.with("cycled", bool(op.getMomentum()));
    call.variable("p", op.getParameterAttr(), typeOf(op.getParameterAttr()));
    call.variable("g", op.getGradientAttr(), typeOf(op.getGradientAttr()));
    call.variable("m", op.getFirstMomentAttr(), typeOf(op.getFirstMomentAttr()));
    call.variable("v", op.getSecondMomentAttr(), typeOf(op.getSecondMomentAttr()));
    return call.call(op);
  }

  KernelCall sgd(SgdOp op) const {
    auto call = writerOf(op);
    call.with("momentum", op.getMomentum()).with("weight_decay", op.getWeightDecay());
    call.with("nesterov", op.getNesterov());
    const RankedTensorType type = typeOf(op.getParameterAttr());
    call.variable("p", op.getParameterAttr(), type).variable("g", op.getGradientAttr(), typeOf(op.getGradientAttr()));
    if (FlatSymbolRefAttr buffer = op.getMomentumBufferAttr())
      call.variable("momentum_buffer", buffer, type);
    return call.call(op);
  }

  KernelCall adagrad(AdagradOp op) const {
    auto call = writerOf(op);
    call.with("epsilon", op.getEpsilon()).with("weight_decay", op.getWeightDecay()).with("lr_decay", op.getLrDecay());
    const RankedTensorType type = typeOf(op.getParameterAttr());
    call.variable("p", op.getParameterAttr(), type).variable("g", op.getGradientAttr(), typeOf(op.getGradientAttr()));
    return call.variable("sum", op.getSquareSumAttr(), type).call(op);
  }

  KernelCall lion(LionOp op) const {
    auto call = writerOf(op);
    call.with("beta1", op.getBeta1()).with("beta2", op.getBeta2()).with("weight_decay", op.getWeightDecay());
    call.with("cycled", bool(op.getMomentum()));
    const RankedTensorType type = typeOf(op.getParameterAttr());
    call.variable("p", op.getParameterAttr(), type).variable("g", op.getGradientAttr(), typeOf(op.getGradientAttr()));
    return call.variable("m", op.getFirstMomentAttr(), type).call(op);
  }

  KernelCall lamb(LambOp op) const {
    auto call = writerOf(op);
    call.with("beta1", op.getBeta1()).with("beta2", op.getBeta2()).with("epsilon", op.getEpsilon());
    call.with("weight_decay", op.getWeightDecay()).with("bias_correction", op.getBiasCorrection());
    call.with("max_coeff", op.getMaxCoeff()).with("min_coeff", op.getMinCoeff()).with("cycled", bool(op.getMomentum()));
    const RankedTensorType type = typeOf(op.getParameterAttr());
    call.variable("p", op.getParameterAttr(), type).variable("g", op.getGradientAttr(), typeOf(op.getGradientAttr()));
    call.variable("m", op.getFirstMomentAttr(), type).variable("v", op.getSecondMomentAttr(), type);
    return call.call(op);
  }

  KernelCall increment(IncrementOp op) const {
    return writerOf(op).variable("step", op.getVariableAttr(), typeOf(op.getVariableAttr())).call();
  }

private:
  /// Whether a GPU may round the factors of a product.
  bool mayRound(Type type) const {
    return target_.device == kernels::Device::Cuda && target_.tf32 && getElementTypeOrSelf(type).isF32();
  }

  RankedTensorType typeOf(FlatSymbolRefAttr name) const {
    return cast<StateOpInterface>(symbols_.lookup(name.getAttr())).getStateType();
  }

  const SymbolTable &symbols_;
  const KernelTarget &target_;
};

/// Whether the kernels' table has such a call. That it has not is a mistake of ours: ops are verified before.
LogicalResult verifyCall(Operation *op, const KernelCall &call) {
  try {
    (void)kernels::Call(call.invocation());
    return success();
  } catch (const Error &error) {
    return op->emitOpError("would be run by a call that kernels/Kernels.inc does not allow: ") << error.what();
  }
}

FailureOr<KernelCall> select(Operation *op, const Selector &select) {
  using Result = FailureOr<KernelCall>;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](MatmulOp o) { return select.matmul(o); })
      .Case([&](MatmulGeluTanhOp o) { return select.matmul(o, "gelu_tanh"); })
      .Case([&](MatmulGeluTanhGradOp o) { return select.matmul(o, "gelu_tanh_grad"); })
      .Case([&](LinearWeightGradOp o) { return select.linearWeightGrad(o); })
      .Case([&](QuantizeFp8Op o) { return select.quantizeFp8(o); })
      .Case([&](Fp8MatmulOp o) { return select.fp8Matmul(o); })
      .Case<AttentionOp, AttentionGradOp, PackedAttentionOp, PackedAttentionGradOp>(
          [&](auto o) { return select.attention(o); })
      .Case([&](TransposeOp o) { return writerOf(o).with("perm", o.getPerm()).call(o); })
      .Case<ReduceSumOp, ReduceMeanOp, ReduceMaxOp>([&](auto o) { return select.reduction(o); })
      .Case<SoftmaxOp, SoftmaxGradOp, LogSoftmaxOp, LogSoftmaxGradOp, GatherOp, GatherGradOp, ConcatOp,
            GatherElementsOp>([&](auto o) { return select.alongAxis(o); })
      .Case([&](ScatterElementsOp o) { return select.scatter(o); })
      .Case(
          [&](ArgMaxOp o) { return writerOf(o).with("axis", int64_t(o.getAxis())).with("last", o.getLast()).call(o); })
      .Case([&](TopKOp o) { return writerOf(o).with("smallest", o.getSmallest()).call(o); })
      .Case([&](CumSumOp o) {
        auto call = writerOf(o).with("exclusive", o.getExclusive()).with("reverse", o.getReverse());
        return call.with("axis", int64_t(o.getAxis())).call(o);
      })
      .Case<LayerNormOp, LayerNormGradOp, RmsNormOp, RmsNormGradOp>([&](auto o) { return select.rowWise(o); })
      .Case([&](LayerNormOfSumOp o) { return select.normOfSum<"layer_norm">(o); })
      .Case([&](RmsNormOfSumOp o) { return select.normOfSum<"rms_norm">(o); })
      .Case([&](BatchNormOp o) { return writerOf(o).with("epsilon", o.getEpsilon()).call(o); })
      .Case([&](BatchNormGradOp o) { return writerOf(o).call(o); })
      .Case([&](ConvOp o) { return select.conv(o); })
      .Case<ConvInputGradOp, ConvWeightGradOp>([&](auto o) { return select.convGrad(o); })
      .Case<MaxPoolOp, MaxPoolGradOp, AveragePoolOp, AveragePoolGradOp>([&](auto o) { return select.pool(o); })
      .Case([&](SliceOp o) { return writerOf(o).with("starts", o.getStarts()).with("steps", o.getSteps()).call(o); })
      .Case([&](PadOp o) {
        auto call = writerOf(o).with("low", o.getLow()).with("interior", o.getInterior());
        return call.with("value", o.getValue()).call(o);
      })
      .Case<CrossEntropyOp, CrossEntropyGradOp, CrossEntropyWithGradOp>([&](auto o) { return select.crossEntropy(o); })
      .Case([&](DropoutOp o) {
        return writerOf(o).with("ratio", o.getRatio()).with("op_id", int64_t(o.getOpId())).call(o);
      })
      .Case([&](UniformOp o) { return writerOf(o).with("op_id", int64_t(o.getOpId())).call(o); })
      .Case([&](BlockSumSquaresOp o) { return writerOf(o).with("block", int64_t(o.getBlock())).call(o); })
      .Case([&](GlobalNormOp o) { return select.globalNorm(o); })
      .Case([&](ClipFactorOp o) { return writerOf(o).with("max_norm", o.getMaxNorm()).call(o); })
      .Case([&](LearningRateOp o) {
        return writerOf(o).with("schedule", o.getSchedule()).with(o.getParameters()).call(o);
      })
      .Case([&](CycledMomentumOp o) { return writerOf(o).with(o.getParameters()).call(o); })
      .Case([&](IncrementOp o) { return select.increment(o); })
      .Case([&](AdamWOp o) { return select.adamw(o); })
      .Case([&](SgdOp o) { return select.sgd(o); })
      .Case([&](LionOp o) { return select.lion(o); })
      .Case([&](LambOp o) { return select.lamb(o); })
      .Case([&](AdagradOp o) { return select.adagrad(o); })
      .Default([](Operation *o) {
        o->emitOpError("has no kernel");
        return Result(failure());
      });
}

} // namespace

FailureOr<KernelCall> ds::selectKernel(Operation *op, const SymbolTable &symbols, const KernelTarget &target) {
  const bool isElementwise = op->hasTrait<Elementwise>() || isa<FusedOp, BroadcastOp>(op);
  FailureOr<KernelCall> call = isElementwise ? selectElementwise(op) : select(op, Selector(symbols, target));
  if (failed(call) || failed(verifyCall(op, *call)))
    return failure();
  return call;
}
