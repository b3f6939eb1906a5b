//===- InsertOptimizer.cpp - make @update ---------------------------------===//
//
// Builds @update, in this order:
//   1. the learning rate from the step's number, by one of DeepSpeed's schedules (WarmupLR and so on); with OneCycle
//      the momentum too;
//   2. sums of squares of each gradient, in the order of the parameters, and the global norm of all;
//   3. the clip factor, as of torch.nn.utils.clip_grad_norm_ (Pascanu et al., ICML 2013);
//   4. an op for each parameter: AdamW or Adam (Kingma and Ba, ICLR 2015; Loshchilov and Hutter, ICLR 2019), SGD,
//      Adagrad (Duchi et al., JMLR 2011), Lion (Chen et al., NeurIPS 2023), Lamb (You et al., ICLR 2020), with the
//      options of torch.optim and DeepSpeed;
//   5. the step's number plus one, and the metrics.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/Gradients.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/train/ParameterGroups.h"
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/StepFunctions.h"

#include "mlir/AsmParser/AsmParser.h"

namespace ds {
#define GEN_PASS_DEF_INSERTOPTIMIZER
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct Trained {
  train::VariableOp parameter, gradient;
};

struct InsertOptimizer : ds::impl::InsertOptimizerBase<InsertOptimizer> {
  using InsertOptimizerBase::InsertOptimizerBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    if (failed(checkOptions()))
      return signalPassFailure();
    if (!symbols.lookup<func::FuncOp>("microbatch")) {
      module.emitError("has no @microbatch; run ds-differentiate before");
      return signalPassFailure();
    }
    if (!symbols.lookup<train::VariableOp>(lossMetric)) {
      module.emitError() << "has no metric @" << lossMetric << "; ds-differentiate makes it";
      return signalPassFailure();
    }
    SmallVector<Trained> trained;
    const Gradients gradients(module);
    for (auto variable : module.getOps<train::VariableOp>())
      if (train::VariableOp gradient = gradients.of(variable.getSymNameAttr()))
        trained.push_back({variable, gradient});
    buildUpdate(symbols, trained);
    if (failed(groups_.requireUsed(module)))
      return signalPassFailure();
  }

private:
  LogicalResult checkOptions() {
    ModuleOp module = getOperation();
    if (!llvm::is_contained({"adamw", "sgd", "adagrad", "lion", "lamb"}, optimizer.getValue()))
      return module.emitError() << "optimizer \"" << optimizer.getValue()
                                << "\" is none of adamw, sgd, adagrad, lion, lamb";
    if (!llvm::is_contained({"constant", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "LRRangeTest", "OneCycle"},
                            schedule.getValue()))
      return module.emitError()
             << "schedule \"" << schedule.getValue()
             << "\" is none of constant, WarmupLR, WarmupDecayLR, WarmupCosineLR, LRRangeTest, OneCycle";
    if (microbatches < 1)
      return module.emitError() << "microbatches is " << microbatches.getValue() << "; it must be at least 1";
    if (!momentumParameters.empty() && !llvm::is_contained({"adamw", "lion", "lamb"}, optimizer.getValue()))
      return module.emitError() << "momentum-parameters cycle a beta, which " << optimizer.getValue() << " has not";
    groups_ = {};
    if (failed(groups_.read(parameterGroups, module)))
      return failure();
    rateParameters_ =
        schedule == "constant" && scheduleParameters.empty()
            ? DictionaryAttr::get(&getContext(),
                                  Builder(&getContext()).getNamedAttr("lr", Builder(&getContext()).getF64FloatAttr(lr)))
            : parse("schedule-parameters", scheduleParameters);
    momentumParameters_ = momentumParameters.empty() ? nullptr : parse("momentum-parameters", momentumParameters);
    return success(rateParameters_ && (momentumParameters_ || momentumParameters.empty()));
  }

  /// `text` is a list such as `cycle_min_lr = 0.1, decay_step_size = 3`; null after an error.
  DictionaryAttr parse(StringRef option, const std::string &text) {
    Attribute list;
    {
      const ScopedDiagnosticHandler silent(&getContext(), [](Diagnostic &) { return success(); });
      list = parseAttribute("{" + text + "}", &getContext());
    }
    auto parsed = dyn_cast_if_present<DictionaryAttr>(list);
    if (!parsed)
      getOperation().emitError() << option << " is \"" << text << "\", which is no list of \"name = value\"";
    return parsed;
  }

  void buildUpdate(SymbolTable &symbols, ArrayRef<Trained> trained) {
    ModuleOp module = getOperation();
    auto b = ImplicitLocOpBuilder::atBlockEnd(module.getLoc(), module.getBody());
    // Every op has a name of its own: the module's is the path that the model was read from.
    setName(b, "update");
    auto update = func::FuncOp::create(b, "update", b.getFunctionType({}, {}));
    b.setInsertionPointToStart(update.addEntryBlock());
    auto counter = RankedTensorType::get({}, b.getI64Type());
    Value step = train::ReadOp::create(b, counter, variable(b, symbols, stepVariable, counter, {}));
    setName(b, learningRateMetric);
    Value rate = train::LearningRateOp::create(b, step, schedule, rateParameters_);
    if (momentumParameters_) {
      setName(b, "momentum");
      momentum_ = train::CycledMomentumOp::create(b, step, momentumParameters_);
    }
    // The global norm over all accumulators, in the order of their parameters.
    Value norm = buildGradientNorm(b, llvm::map_to_vector(trained, [](const Trained &one) { return one.gradient; }));
    Value targets = readTargets(b, symbols);
    if (targets)
      norm = train::DivOp::create(b, norm, targets);
    Value factor = clip > 0 ? train::ClipFactorOp::create(b, norm, APFloat(clip.getValue())).getResult()
                            : constant(b, b.getF64Type(), 1.0);
    if (targets) // gradients are sums over targets; the update makes them means as it reads them
      factor = train::DivOp::create(b, factor, targets);
    for (Trained one : trained) {
      ParameterGroup *group = groups_.of(one.parameter.getSymName());
      decay_ = group && group->weightDecay ? *group->weightDecay : weightDecay;
      updateParameter(b, symbols, one, group ? rateOf(b, *group, rate) : rate, step, factor);
    }
    setName(b, stepVariable);
    train::IncrementOp::create(b, FlatSymbolRefAttr::get(b.getContext(), stepVariable));
    storeMetric(b, symbols, gradientNormMetric, norm);
    storeMetric(b, symbols, learningRateMetric, rate);
    setName(b, lossMetric);
    averageLoss(b, symbols, targets);
    setName(b, "update");
    func::ReturnOp::create(b);
  }

  /// The schedule's rate times the group's factor, made once.
  static Value rateOf(ImplicitLocOpBuilder &b, ParameterGroup &group, Value rate) {
    if (group.lrFactor == 1)
      return rate;
    if (!group.rate)
      group.rate = train::MulOp::create(b, rate, constant(b, b.getF64Type(), group.lrFactor));
    return group.rate;
  }

  static Value constant(ImplicitLocOpBuilder &b, Type element, double value) {
    auto type = RankedTensorType::get({}, element);
    return train::ConstantOp::create(b, type, DenseElementsAttr::get(type, b.getFloatAttr(element, value)));
  }

  void updateParameter(ImplicitLocOpBuilder &b, SymbolTable &symbols, const Trained &trained, Value rate, Value step,
                       Value factor) {
    train::VariableOp parameter = trained.parameter;
    b.setLoc(parameter.getLoc());
    StringRef name = parameter.getSymName();
    const RankedTensorType own = parameter.getTensorType(), type = narrowMoments ? own : train::statisticsType(own);
    auto symbol = FlatSymbolRefAttr::get(b.getContext(), name);
    train::VariableOp accumulator = trained.gradient;
    auto gradient = FlatSymbolRefAttr::get(b.getContext(), accumulator.getSymName());
    if (optimizer == "adamw") {
      auto first = variable(b, symbols, firstMomentName(name), type, symbol);
      auto second = variable(b, symbols, secondMomentName(name), type, symbol);
      train::AdamWOp::create(b, symbol, gradient, first, second, rate, step, factor, momentum_,
                             b.getF64FloatAttr(beta1), b.getF64FloatAttr(beta2), b.getF64FloatAttr(epsilon),
                             b.getF64FloatAttr(decay_), b.getBoolAttr(adamWMode));
    } else if (optimizer == "lamb") {
      auto first = variable(b, symbols, firstMomentName(name), type, symbol);
      auto second = variable(b, symbols, secondMomentName(name), type, symbol);
      train::LambOp::create(b, symbol, gradient, first, second, rate, step, factor, momentum_, b.getF64FloatAttr(beta1),
                            b.getF64FloatAttr(beta2), b.getF64FloatAttr(epsilon), b.getF64FloatAttr(decay_),
                            b.getF64FloatAttr(maxCoeff), b.getF64FloatAttr(minCoeff), b.getBoolAttr(biasCorrection));
    } else if (optimizer == "lion") {
      auto moment = variable(b, symbols, firstMomentName(name), type, symbol);
      train::LionOp::create(b, symbol, gradient, moment, rate, step, factor, momentum_, b.getF64FloatAttr(beta1),
                            b.getF64FloatAttr(beta2), b.getF64FloatAttr(decay_));
    } else if (optimizer == "adagrad") {
      auto sum = variable(b, symbols, squareSumName(name), type, symbol);
      train::AdagradOp::create(b, symbol, gradient, sum, rate, step, factor, b.getF64FloatAttr(epsilon),
                               b.getF64FloatAttr(decay_), b.getF64FloatAttr(lrDecay));
    } else {
      FlatSymbolRefAttr buffer =
          momentum != 0 ? variable(b, symbols, momentumName(name), type, symbol) : FlatSymbolRefAttr();
      train::SgdOp::create(b, symbol, gradient, buffer, rate, step, factor, b.getF64FloatAttr(momentum),
                           b.getF64FloatAttr(decay_), b.getBoolAttr(nesterov));
    }
  }

  /// A new variable of optimizer state that starts at zero, of a parameter or, where that is null, of all.
  static FlatSymbolRefAttr variable(ImplicitLocOpBuilder &b, SymbolTable &symbols, StringRef name,
                                    RankedTensorType type, FlatSymbolRefAttr parameter) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(b.getInsertionBlock()->getParentOp());
    auto zero = train::FillSourceAttr::get(b.getContext(), b.getF64FloatAttr(0));
    auto op = train::VariableOp::create(b, train::VariableKind::Optimizer, name, type, zero, parameter);
    symbols.insert(op);
    return FlatSymbolRefAttr::get(op.getSymNameAttr());
  }

  /// The targets of the step, all ranks'; null where losses are not weighed by them.
  static Value readTargets(ImplicitLocOpBuilder &b, SymbolTable &symbols) {
    auto targets = symbols.lookup<train::VariableOp>(targetsMetric);
    return targets ? train::ReadOp::create(b, targets.getTensorType(), FlatSymbolRefAttr::get(targets.getSymNameAttr()))
                         .getResult()
                   : Value();
  }

  /// The metric holds the sum over the micro-batches; users read their mean, or that of their targets.
  void averageLoss(ImplicitLocOpBuilder &b, SymbolTable &symbols, Value targets) {
    if (microbatches == 1 && !targets)
      return;
    auto loss = symbols.lookup<train::VariableOp>(lossMetric);
    auto name = FlatSymbolRefAttr::get(loss.getSymNameAttr());
    Value sum = train::ReadOp::create(b, loss.getTensorType(), name);
    Type element = loss.getTensorType().getElementType();
    Value count = targets ? train::CastOp::create(b, targets, TypeAttr::get(element)).getResult()
                          : constant(b, element, double(microbatches));
    train::StoreOp::create(b, name, train::DivOp::create(b, sum, count));
  }

  DictionaryAttr rateParameters_, momentumParameters_; // of the schedule; null: momentum stays as it is
  ParameterGroups groups_;
  double decay_ = 0; // of the parameter that is looked at
  Value momentum_;   // of this update
};

} // namespace
