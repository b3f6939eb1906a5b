//===- LowerPrecision.cpp - compute with 16 bits ----------------------------===//
//
// One walk in program order, op by op, asking the table in PrecisionTable.cpp:
//   1. Reads of parameters, and what is moved of them, are marked; they stay f32 until an op needs them in 16 bits.
//   2. An op with an operand of 16 bits or marked has each operand cast as its row says; its result type follows.
//   3. A chain of elementwise ops is computed in f32, and rounded at its end. A value that it reads several times is
//      cast once, so that the value's gradients add up in f32.
//   4. A sum of 16 bits that was left in f32, as a loss is, stays f32 where only parameters are applied to it.
// A cast of a constant is a constant. This is mixed precision with f32 master weights (Micikevicius et al., ICLR
// 2018), in bf16, or in f16 with the loss scaling of ds-scale-loss. Cf. torch.autocast, which decides op by op while it
// runs.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/PrecisionTable.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

#include "llvm/ADT/DenseSet.h"

#include <cmath>

namespace ds {
#define GEN_PASS_DEF_LOWERPRECISION
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

bool isFull(Value value) { return getElementTypeOrSelf(value.getType()).isF32(); }
bool isLow(Value value) { return train::isNarrowFloat(getElementTypeOrSelf(value.getType())); }

/// `value` rounded to `type`, or the largest number of that where rounding would make infinity of it.
APFloat narrowed(float value, FloatType type) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  APFloat result(value);
  bool loses = false;
  result.convert(semantics, APFloat::rmNearestTiesToEven, &loses);
  return result.isInfinity() && !std::isinf(value) ? APFloat::getLargest(semantics, value < 0) : result;
}

/// `value` itself where that keeps it finite, else as f32 what it is narrowed to.
float withinRange(float value, FloatType type) {
  const APFloat low = narrowed(value, type);
  return low.isLargest() ? low.convertToFloat() : value;
}

/// Large constants are resources.
ArrayRef<float> resourceValues(ElementsAttr elements) {
  auto resource = dyn_cast<DenseResourceElementsAttr>(elements);
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  return blob ? blob->getDataAs<float>() : ArrayRef<float>();
}

template <typename To> ElementsAttr resource(ElementsAttr like, FloatType type, ArrayRef<To> values) {
  auto blob = HeapAsmResourceBlob::allocateAndCopyInferAlign<To>(values, /*dataIsMutable=*/false);
  return DenseResourceElementsAttr::get(like.getShapedType().clone(type),
                                        cast<DenseResourceElementsAttr>(like).getRawHandle().getKey(), std::move(blob));
}

/// `elements` of f32 in `type`, `low` or f32, what is finite staying finite in `low`; null where it is neither dense
/// nor a resource.
ElementsAttr withinRange(ElementsAttr elements, FloatType low, FloatType type) {
  if (auto dense = dyn_cast<DenseElementsAttr>(elements))
    return dense.mapValues(type, [&](const APFloat &value) {
      const float number = value.convertToFloat();
      return (type == low ? narrowed(number, low) : APFloat(withinRange(number, low))).bitcastToAPInt();
    });
  const ArrayRef<float> values = resourceValues(elements);
  if (values.empty())
    return {};
  if (type != low)
    return resource<float>(elements, type, llvm::map_to_vector(values, [&](float v) { return withinRange(v, low); }));
  return resource<uint16_t>(elements, type, llvm::map_to_vector(values, [&](float v) {
                              return uint16_t(narrowed(v, low).bitcastToAPInt().getZExtValue());
                            }));
}

struct LowerPrecision : ds::impl::LowerPrecisionBase<LowerPrecision> {
  using LowerPrecisionBase::LowerPrecisionBase;

  void runOnOperation() override {
    Builder builder(&getContext());
    low_ = to == "f16" ? builder.getF16Type() : to == "bf16" ? builder.getBF16Type() : FloatType();
    if (!low_) {
      getOperation().emitError() << "to \"" << to.getValue() << "\" is none of bf16, f16";
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      parameters_.clear();
      chained_.clear();
      sums_.clear();
      widened_.clear();
      for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
        if (failed(visit(&op, symbols)))
          return signalPassFailure();
    }
  }

private:
  /// Whether an operand makes its reader compute with 16 bits.
  bool isReached(Value value) const { return isLow(value) || parameters_.contains(value) || chained_.contains(value); }

  LogicalResult visit(Operation *op, const SymbolTable &symbols) {
    if (auto read = dyn_cast<train::ReadOp>(op)) {
      auto variable = symbols.lookup<train::VariableOp>(read.getVariable());
      if (variable && variable.getKind() == train::VariableKind::Parameter && isFull(read))
        parameters_.insert(read);
      return success();
    }
    if (auto constant = dyn_cast<train::ConstantOp>(op)) {
      keepFinite(constant);
      return success();
    }
    if (op->hasTrait<OpTrait::IsTerminator>()) { // the loss
      for (OpOperand &operand : op->getOpOperands())
        if (isLow(operand.get()))
          cast(operand, Float32Type::get(&getContext()));
      return success();
    }
    const OpPrecision *precision = precisionOf(op->getName().stripDialect());
    if (llvm::none_of(op->getOperands(), [&](Value value) { return isReached(value); }) || scalesSum(op)) {
      noteSums(op);
      return success();
    }
    if (!precision)
      return op->emitOpError("has no row in the table of precisions, so it cannot be computed with ") << low_;
    return lower(op, *precision);
  }

  /// Whether an elementwise op applies parameters to a sum that was left in f32, as a learned weight of a loss does.
  bool scalesSum(Operation *op) const {
    return op->hasTrait<train::Elementwise>() &&
           llvm::none_of(op->getOperands(), [&](Value value) { return isLow(value) || chained_.contains(value); }) &&
           llvm::any_of(op->getOperands(), [&](Value value) { return sums_.contains(value); });
  }

  void noteSums(Operation *op) {
    if (llvm::any_of(op->getOperands(), [&](Value value) { return isLow(value) || sums_.contains(value); }))
      for (Value result : op->getResults())
        if (isFull(result))
          sums_.insert(result);
  }

  /// A mask that holds the lowest f32 means a finite number, of which a row may hold nothing else.
  void keepFinite(train::ConstantOp constant) const {
    auto type = dyn_cast<Float32Type>(getElementTypeOrSelf(constant.getType()));
    const ArrayRef<float> values = resourceValues(constant.getValue());
    const bool fits =
        llvm::none_of(values, [&](float value) { return withinRange(value, low_) != value && !std::isnan(value); });
    if (type && (!fits || isa<DenseElementsAttr>(constant.getValue())))
      constant.setValueAttr(withinRange(constant.getValue(), low_, type));
  }

  LogicalResult lower(Operation *op, const OpPrecision &precision) {
    // The rows of a table that are moved are rounded, not the whole table.
    if (precision.kind == OpKind::Movement && llvm::none_of(op->getOperands(), isLow)) {
      parameters_.insert_range(op->getResults());
      return success();
    }
    // Where parameters are operands that stay f32, and nothing else is reached, nothing changes.
    const bool applies =
        precision.kind == OpKind::Elementwise || llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
          return isLow(operand.get()) || (parameters_.contains(operand.get()) &&
                                          precision.operand(operand.getOperandNumber()) == OperandPrecision::Low);
        });
    if (!applies) {
      noteSums(op);
      return success();
    }
    for (OpOperand &operand : op->getOpOperands()) {
      const OperandPrecision wanted = precision.operand(operand.getOperandNumber());
      if (wanted == OperandPrecision::Low && isFull(operand.get()))
        cast(operand, low_);
      else if (wanted == OperandPrecision::Full && isLow(operand.get()))
        cast(operand, Float32Type::get(&getContext()));
    }
    if (precision.kind == OpKind::Sum && llvm::any_of(op->getOperands(), isLow))
      op->setAttr("wide", UnitAttr::get(&getContext()));
    if (failed(inferAgain(op)))
      return failure();
    if (precision.kind == OpKind::Elementwise)
      roundUnlessChained(op);
    else
      noteSums(op);
    return success();
  }

  void roundUnlessChained(Operation *op) {
    Value result = op->getResult(0);
    if (!isFull(result))
      return;
    const OpPrecision *reader =
        result.hasOneUse() ? precisionOf(result.getUsers().begin()->getName().stripDialect()) : nullptr;
    if (reader && reader->kind == OpKind::Elementwise) {
      chained_.insert(result);
      return;
    }
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    auto low = train::CastOp::create(builder, op->getLoc(), result, TypeAttr::get(low_));
    result.replaceAllUsesExcept(low.getResult(), low);
  }

  void cast(OpOperand &operand, FloatType type) {
    OpBuilder builder(operand.getOwner());
    if (type != low_) {
      Value &wide = widened_[operand.get()];
      if (!wide)
        wide = train::CastOp::create(builder, operand.get().getLoc(), operand.get(), TypeAttr::get(type));
      return operand.set(wide);
    }
    auto constant = operand.get().getDefiningOp<train::ConstantOp>();
    if (ElementsAttr low = constant ? withinRange(constant.getValue(), low_, type) : ElementsAttr()) {
      operand.set(train::ConstantOp::create(builder, constant.getLoc(), low));
      return;
    }
    operand.set(train::CastOp::create(builder, operand.get().getLoc(), operand.get(), TypeAttr::get(type)));
  }

  /// Result types from the operands as they are now.
  static LogicalResult inferAgain(Operation *op) {
    auto inference = dyn_cast<InferTypeOpInterface>(op);
    if (!inference)
      return success();
    SmallVector<Type> types;
    if (failed(inference.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(), op->getAttrDictionary(),
                                          op->getPropertiesStorage(), op->getRegions(), types)))
      return failure();
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types))
      result.setType(type);
    return success();
  }

  FloatType low_; ///< bf16 or f16
  // Of f32, and `low_` as soon as anything but elementwise ops reads them:
  llvm::DenseSet<Value> parameters_;     ///< also what is moved of them
  llvm::DenseSet<Value> chained_;        ///< from one elementwise op to the next
  llvm::DenseSet<Value> sums_;           ///< computed from 16 bits, and left f32
  llvm::DenseMap<Value, Value> widened_; ///< from 16 bits to f32; looked up, never iterated
};

} // namespace
