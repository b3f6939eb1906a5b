//===- OutlineFragments.cpp - cut the step into fragments -------------------===//
#include "compiler/passes/Passes.h"
#include "compiler/passes/TrainStep.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Train/LocationName.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace ds {
#define GEN_PASS_DEF_OUTLINEFRAGMENTS
#include "compiler/passes/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// A symbol for a value of this name: fragments and metrics keep theirs.
std::string valueName(StringRef name) {
  return (llvm::is_contained(reservedNames, name) ? name + "::value" : name).str();
}

/// What a kept value is called: the ONNX name, or "value".
std::string nameOf(Location location) {
  std::string name = train::locationName(location);
  return name.empty() ? "value" : valueName(name);
}

struct OutlineFragments : ds::impl::OutlineFragmentsBase<OutlineFragments> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    auto microbatch = symbols.lookup<func::FuncOp>("microbatch"), update = symbols.lookup<func::FuncOp>("update"),
         evaluate = symbols.lookup<func::FuncOp>("evaluate");
    if (!microbatch || !update || !evaluate) {
      module.emitError("needs @microbatch, @update and @evaluate; see ds-verify-train-form");
      return signalPassFailure();
    }
    for (func::FuncOp function : {microbatch, update, evaluate})
      if (!function.getBody().hasOneBlock() || (function != microbatch && function.getNumArguments() != 0 &&
                                                function.getArgumentTypes() != microbatch.getArgumentTypes())) {
        function.emitError("must have one block and @microbatch's arguments, or none; see ds-verify-train-form");
        return signalPassFailure();
      }
    symbols_ = &symbols;
    builder_ = OpBuilder::atBlockEnd(module.getBody());
    makeInputs(microbatch);
    for (Operation &op : microbatch.getBody().front())
      for (StringAttr name : train::writtenVariables(&op))
        written_.insert(name);
    SmallVector<Operation *> forward, backward;
    for (Operation &op : microbatch.getBody().front().without_terminator())
      (!backward.empty() || isa<train::LossGradientOp>(op) ? backward : forward).push_back(&op);
    keepForLater(forward, backward);
    outline(microbatch, "forward", forward);
    outline(microbatch, "backward", backward);
    outlineWhole(update, "update");
    outlineWhole(evaluate, "evaluate");
  }

private:
  /// A value that is repeated where it is needed, for it costs nothing: a view, a constant, a read of a variable that
  /// stays as it is.
  bool isFree(Value value) const {
    if (auto read = value.getDefiningOp<train::ReadOp>())
      return !written_.contains(read.getVariableAttr().getAttr());
    return isa_and_nonnull<train::ReshapeOp, train::ConstantOp>(value.getDefiningOp());
  }

  /// A dist.value per graph input and the fragment that feeds them.
  void makeInputs(func::FuncOp function) {
    SmallVector<dist::ValueOp> values;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto input = function.getArgAttrOfType<StringAttr>(i, inputAttribute);
      std::string name = input ? input.str() : "input" + std::to_string(i);
      auto value = dist::ValueOp::create(builder_, function.getArgument(i).getLoc(), valueName(name),
                                         cast<RankedTensorType>(function.getArgument(i).getType()),
                                         builder_.getStringAttr(name));
      for (StringRef about : {tokensAttribute, limitAttribute, ignoredAttribute})
        if (Attribute attribute = function.getArgAttr(i, about))
          value->setAttr(about, attribute);
      symbols_->insert(value);
      inputs_.push_back(value.getSymNameAttr());
      values.push_back(value);
    }
    OpBuilder::InsertionGuard guard(builder_);
    auto feed = makeFragment(function.getLoc(), "feed");
    for (dist::ValueOp value : values)
      dist::FeedOp::create(builder_, value.getLoc(), value.getSymNameAttr());
    (void)feed;
  }

  /// An empty fragment; the builder is left inside it.
  dist::FragmentOp makeFragment(Location location, StringRef name) {
    builder_.setInsertionPointToEnd(getOperation().getBody());
    auto fragment = dist::FragmentOp::create(builder_, location, name);
    symbols_->insert(fragment);
    builder_.setInsertionPointToStart(&fragment.getBody().emplaceBlock());
    return fragment;
  }

  /// Names what `backward` reads of `forward`, in the order in which it was computed.
  void keepForLater(ArrayRef<Operation *> forward, ArrayRef<Operation *> backward) {
    llvm::DenseSet<Operation *> later(backward.begin(), backward.end());
    llvm::DenseSet<Value> needed;
    std::function<void(Value)> need = [&](Value value) {
      Operation *op = value.getDefiningOp();
      if (!op || later.contains(op))
        return;
      if (!isFree(value))
        needed.insert(value);
      else
        llvm::for_each(op->getOperands(), need);
    };
    for (Operation *op : backward) // bodies of fused ops are isolated: operands are all they read
      llvm::for_each(op->getOperands(), need);
    builder_.setInsertionPoint(getOperation().getBody(), getOperation().getBody()->end());
    for (Operation *op : forward)
      for (Value result : op->getResults())
        if (needed.contains(result)) {
          auto value = dist::ValueOp::create(builder_, result.getLoc(), nameOf(result.getLoc()),
                                             cast<RankedTensorType>(result.getType()), StringAttr());
          symbols_->insert(value); // makes the name unique
          kept_[result] = value.getSymNameAttr();
        }
  }

  /// Clones `ops` into a new fragment; takes what others computed, keeps what others need.
  void outline(func::FuncOp function, StringRef name, ArrayRef<Operation *> ops) {
    makeFragment(function.getLoc(), name);
    IRMapping mapping;
    std::function<void(Value)> provide = [&](Value value) {
      if (mapping.contains(value))
        return;
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        mapping.map(value, take(inputs_[argument.getArgNumber()], value));
      } else if (StringAttr kept = kept_.lookup(value)) {
        mapping.map(value, take(kept, value));
      } else {
        llvm::for_each(value.getDefiningOp()->getOperands(), provide);
        builder_.clone(*value.getDefiningOp(), mapping);
      }
    };
    for (Operation *op : ops) {
      llvm::for_each(op->getOperands(), provide);
      Operation *clone = builder_.clone(*op, mapping);
      for (auto [result, cloned] : llvm::zip(op->getResults(), clone->getResults()))
        if (StringAttr kept = kept_.lookup(result))
          dist::KeepOp::create(builder_, result.getLoc(), cloned, FlatSymbolRefAttr::get(kept));
    }
    if (name != "forward")
      symbols_->erase(function);
  }

  void outlineWhole(func::FuncOp function, StringRef name) {
    SmallVector<Operation *> ops;
    for (Operation &op : function.getBody().front().without_terminator())
      ops.push_back(&op);
    kept_.clear();
    // The function gives its name to the fragment.
    (void)symbols_->rename(function, (name + "::outlined").str());
    outline(function, name, ops);
  }

  Value take(StringAttr name, Value like) {
    return dist::TakeOp::create(builder_, like.getLoc(), like.getType(), FlatSymbolRefAttr::get(name));
  }

  SymbolTable *symbols_ = nullptr;
  OpBuilder builder_{static_cast<MLIRContext *>(nullptr)};
  SmallVector<StringAttr> inputs_;
  llvm::DenseMap<Value, StringAttr> kept_;
  llvm::DenseSet<StringAttr> written_; // variables, by @microbatch
};

} // namespace
