//===- ScaleLoss.cpp - the loss scale of fp16, and the steps that it skips ---===//
//
// 1. @microbatch: the gradient of the loss is multiplied by the scale, a variable. Gradients are linear in it, so all
// of
//    them are, and what float16 would round to zero is a number.
// 2. @update: the norm, of all gradients of all ranks, is infinite or NaN exactly where one of them is. It is divided
// by
//    the scale, and so is what updates multiply gradients by; where it is not finite that is 0, at which an update
//    leaves everything as it is, and the step is not counted.
// 3. The scale's next value, by DeepSpeed's rule (deepspeed/runtime/fp16/loss_scaler.py, DynamicLossScaler): halved
//    by an overflow once `hysteresis` of them have come, doubled after `window` steps without one.
// 4. Metrics: the scale that this step used; whether it was skipped.
// Micikevicius et al., ICLR 2018.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/StepFunctions.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

namespace ds {
#define GEN_PASS_DEF_SCALELOSS
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Builds arithmetic on scalars.
class Scalars {
public:
  explicit Scalars(ImplicitLocOpBuilder &builder) : b(builder) {}

  Value number(double value, FloatType type) { return constant(b.getFloatAttr(type, value)); }
  Value integer(int64_t value) { return constant(b.getI64IntegerAttr(value)); }
  Value cast(Value value, Type type) {
    if (getElementTypeOrSelf(value.getType()) == type)
      return value;
    return train::CastOp::create(b, value, TypeAttr::get(type));
  }
  Value either(Value condition, Value yes, Value no) { return train::SelectOp::create(b, condition, yes, no); }
  template <typename Op> Value make(Value lhs, Value rhs) { return Op::create(b, lhs, rhs); }

  Value read(StringRef variable, Type type) {
    return train::ReadOp::create(b, RankedTensorType::get({}, type), symbol(variable));
  }
  void store(Value value, StringRef variable) { train::StoreOp::create(b, symbol(variable), value); }

private:
  Value constant(TypedAttr value) {
    auto type = RankedTensorType::get({}, value.getType());
    return train::ConstantOp::create(b, type, DenseElementsAttr::get(type, Attribute(value)));
  }
  FlatSymbolRefAttr symbol(StringRef name) { return FlatSymbolRefAttr::get(b.getContext(), name); }

  ImplicitLocOpBuilder &b;
};

struct ScaleLoss : ds::impl::ScaleLossBase<ScaleLoss> {
  using ScaleLossBase::ScaleLossBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    auto microbatch = symbols.lookup<func::FuncOp>("microbatch"), update = symbols.lookup<func::FuncOp>("update");
    if (!microbatch || !update) {
      module.emitError("has no @microbatch and @update; ds-differentiate and ds-insert-optimizer make them");
      return signalPassFailure();
    }
    auto norms = update.getOps<train::GlobalNormOp>();
    if (llvm::range_size(norms) != 1) {
      update.emitError() << "has " << llvm::range_size(norms) << " global norms; an overflow is seen in the one of all";
      return signalPassFailure();
    }
    if (!(initial > 0) || window < 0 || hysteresis < 1 || !(least > 0)) {
      module.emitError() << "initial is " << initial.getValue() << ", window " << window.getValue() << ", hysteresis "
                         << hysteresis.getValue() << ", least " << least.getValue()
                         << "; scales must be above 0, counts at least 0 and 1";
      return signalPassFailure();
    }
    makeVariables(symbols, update);
    scaleSeeds(microbatch);
    guard(symbols, *norms.begin(), update);
  }

private:
  bool isDynamic() const { return window > 0; }

  void makeVariables(SymbolTable &symbols, func::FuncOp before) {
    ImplicitLocOpBuilder b(before.getLoc(), before);
    const auto make = [&](StringRef name, Type type, double first) {
      setName(b, name);
      symbols.insert(train::VariableOp::create(b, train::VariableKind::Optimizer, name, RankedTensorType::get({}, type),
                                               train::FillSourceAttr::get(b.getContext(), b.getF64FloatAttr(first)),
                                               FlatSymbolRefAttr()));
    };
    make(lossScaleVariable, b.getF32Type(), initial);
    if (!isDynamic())
      return;
    make(cleanStepsVariable, b.getI64Type(), 0);
    make(hysteresisVariable, b.getI64Type(), double(hysteresis));
  }

  static void scaleSeeds(func::FuncOp microbatch) {
    for (auto seed : llvm::make_early_inc_range(microbatch.getOps<train::LossGradientOp>())) {
      auto b = ImplicitLocOpBuilder::atBlockEnd(seed.getLoc(), seed->getBlock());
      b.setInsertionPointAfter(seed);
      setName(b, lossScaleVariable);
      Scalars s(b);
      Value scale = s.cast(s.read(lossScaleVariable, b.getF32Type()), getElementTypeOrSelf(seed.getType()));
      Value scaled = s.make<train::MulOp>(seed, scale);
      seed.getResult().replaceAllUsesExcept(scaled, scaled.getDefiningOp());
    }
  }

  void guard(SymbolTable &symbols, train::GlobalNormOp norm, func::FuncOp update) {
    auto b = ImplicitLocOpBuilder::atBlockEnd(norm.getLoc(), norm->getBlock());
    b.setInsertionPointAfter(norm);
    setName(b, lossScaleVariable);
    Scalars s(b);
    Value scale = s.read(lossScaleVariable, b.getF32Type()), divisor = s.cast(scale, b.getF64Type());
    Value largest = s.number(std::numeric_limits<double>::max(), b.getF64Type());
    Value finite = s.make<train::LessEqualOp>(norm, largest); // false for a NaN, too
    Value unscaled = s.make<train::DivOp>(norm, divisor);
    const SmallPtrSet<Operation *, 2> kept{finite.getDefiningOp(), unscaled.getDefiningOp()};
    norm.getResult().replaceAllUsesExcept(unscaled, kept);
    guardUpdates(s, b, update, divisor, finite);
    for (auto increment : llvm::make_early_inc_range(update.getOps<train::IncrementOp>())) {
      b.setInsertionPoint(increment);
      setName(b, stepVariable);
      Value before = s.read(increment.getVariable(), b.getI64Type());
      Value counted = s.cast(finite, b.getI64Type());
      s.store(s.make<train::AddOp>(before, counted), increment.getVariable());
      increment.erase();
    }
    b.setInsertionPoint(update.getBody().front().getTerminator());
    storeMetric(b, symbols, lossScaleMetric, scale);
    setName(b, skippedMetric);
    Value skipped = s.cast(train::NotOp::create(b, finite), b.getF32Type());
    if (isDynamic())
      skipped = s.make<train::AddOp>(skipped, nextScale(s, b, scale, finite));
    storeMetric(b, symbols, skippedMetric, skipped);
  }

  /// What updates multiply gradients by also divides by the scale, or is 0.
  static void guardUpdates(Scalars &s, ImplicitLocOpBuilder &b, func::FuncOp update, Value scale, Value finite) {
    llvm::MapVector<Value, Value> guarded;
    for (Operation &op : llvm::make_early_inc_range(update.getBody().front())) {
      if (!updatedParameter(&op))
        continue;
      OpOperand &clip = clipOf(op);
      Value &factor = guarded[clip.get()];
      if (!factor) {
        b.setInsertionPoint(&op);
        setName(b, lossScaleVariable);
        Value unscaled = s.make<train::DivOp>(clip.get(), scale);
        factor = s.either(finite, unscaled, s.number(0, b.getF64Type()));
      }
      clip.set(factor);
    }
  }

  static OpOperand &clipOf(Operation &update) {
    return *TypeSwitch<Operation *, OpOperand *>(&update)
                .Case<train::AdamWOp, train::SgdOp, train::AdagradOp, train::LionOp, train::LambOp>(
                    [](auto op) { return &op.getClipMutable(); })
                .Default([](Operation *other) -> OpOperand * {
                  llvm::reportFatalInternalError("ds-scale-loss does not know " + other->getName().getStringRef());
                });
  }

  /// Stores the state after this step. Returns 1 where an overflow has come at the least scale, which DeepSpeed ends a
  /// run for, else 0.
  Value nextScale(Scalars &s, ImplicitLocOpBuilder &b, Value scale, Value finite) {
    setName(b, lossScaleVariable);
    const FloatType f32 = b.getF32Type();
    Value clean = s.read(cleanStepsVariable, b.getI64Type()), left = s.read(hysteresisVariable, b.getI64Type());
    Value none = s.integer(0), one = s.integer(1), all = s.integer(hysteresis), period = s.integer(window);
    Value lowest = s.number(least, f32), highest = s.number(0x1p127, f32);
    Value half = s.number(0.5, f32), two = s.number(2, f32);
    // After an overflow.
    Value shrinks = s.make<train::LessEqualOp>(left, one);
    Value halved = s.make<train::MulOp>(scale, half);
    Value bounded = s.make<train::MaxOp>(halved, lowest);
    Value lower = s.either(shrinks, bounded, scale);
    Value less = s.make<train::SubOp>(left, one);
    Value fewer = s.either(shrinks, left, less);
    // After a step without one; `clean` counts those before it, from 1 again once the scale is doubled.
    Value due = s.make<train::EqualOp>(clean, period);
    Value doubled = s.make<train::MulOp>(scale, two);
    Value finiteScale = s.make<train::MinOp>(doubled, highest);
    Value higher = s.either(due, finiteScale, scale);
    Value more = s.make<train::AddOp>(clean, one);
    Value counted = s.either(due, one, more);
    Value restored = consecutive ? all : s.either(due, all, left);
    // Where nothing is left to do about one.
    Value isLowest = s.make<train::LessEqualOp>(scale, lowest);
    Value stuck = s.make<train::AndOp>(shrinks, isLowest);
    Value overflow = train::NotOp::create(b, finite);
    Value ends = s.cast(s.make<train::AndOp>(stuck, overflow), f32);
    // Last, when nothing reads what was there.
    s.store(s.either(finite, higher, lower), lossScaleVariable);
    s.store(s.either(finite, counted, none), cleanStepsVariable);
    s.store(s.either(finite, restored, fewer), hysteresisVariable);
    return ends;
  }
};

} // namespace
