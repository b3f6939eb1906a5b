//===- RegroupAttention.cpp - find attention in what exporters write --------===//
//
// Every product whose left side is a softmax over its last dimension is taken for the end of an attention and followed
// up, op by op, to query and key. A step that is none of the forms below, or a value on the way that something else
// reads, and the product stays as it is.
// The op is scaled dot-product attention (Vaswani et al., 2017), which has kernels that never write the scores
// (FlashAttention, Dao et al., 2022). The pattern is found by hand-written matching, as in XLA's cuDNN fused
// attention rewriter and the patterns of torch._inductor for scaled_dot_product_attention.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/KernelSelection.h"
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"

#include <limits>

namespace ds {
#define GEN_PASS_DEF_REGROUPATTENTION
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// A score this low is as good as hidden: exporters add the lowest float, some -10000.
constexpr double hiddenBelow = -1e30;

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// `value` without factors and divisors that are one number; they go into `scale`.
Value withoutScale(Value value, double &scale) {
  while (value.hasOneUse()) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<train::MulOp, train::DivOp>(op))
      break;
    Value number = op->getOperand(1), rest = op->getOperand(0);
    if (isa<train::MulOp>(op) && !splatConstant(number))
      std::swap(number, rest);
    const std::optional<double> factor = splatConstant(number);
    if (!factor || rest.getType() != value.getType())
      break;
    scale = isa<train::MulOp>(op) ? scale * *factor : scale / *factor;
    value = rest;
  }
  return value;
}

/// `value` in shape `shape`, of the value that reshapes made it from.
Value viewedAs(Value value, ArrayRef<int64_t> shape, Operation *before) {
  while (auto reshape = value.getDefiningOp<train::ReshapeOp>())
    value = reshape.getInput();
  if (shapeOf(value) == shape)
    return value;
  OpBuilder builder(before); // dead where the match fails
  return train::ReshapeOp::create(builder, before->getLoc(), value, shape);
}

/// x where `value` is x with its last two dimensions swapped, also if x passes through a shape with its leading
/// dimensions merged; else null.
Value swapped(Value value) {
  auto outer = value.getDefiningOp<train::ReshapeOp>();
  auto transpose = (outer ? outer.getInput() : value).getDefiningOp<train::TransposeOp>();
  if (!transpose)
    return {};
  SmallVector<int64_t> rest(transpose.getPerm());
  const size_t rank = rest.size();
  if (rank < 2 || rest[rank - 2] != int64_t(rank - 1))
    return {};
  std::swap(rest[rank - 2], rest[rank - 1]);
  if (!outer && !llvm::is_sorted(rest)) { // dead where the match fails
    OpBuilder builder(transpose);
    return train::TransposeOp::create(builder, transpose.getLoc(), transpose.getInput(), rest);
  }
  if (!outer)
    return transpose.getInput();
  SmallVector<int64_t> shape(shapeOf(value));
  if (!llvm::is_sorted(rest) || shape.size() < 2 || ArrayRef(shape).take_back(2) != shapeOf(transpose).take_back(2))
    return {};
  std::swap(shape[shape.size() - 2], shape.back());
  return viewedAs(transpose.getInput(), shape, transpose);
}

/// [batch, groups, keys, depth] where `value` [batch, heads, keys, depth] repeats each group for several heads.
Value withoutRepeats(Value value) {
  auto merge = value.getDefiningOp<train::ReshapeOp>();
  auto repeat = (merge ? merge.getInput() : value).getDefiningOp<train::BroadcastOp>();
  if (!repeat || shapeOf(value).size() != 4)
    return value;
  ArrayRef<int64_t> thin = shapeOf(repeat.getInput()), wide = shapeOf(repeat);
  if (!merge) { // one group
    const bool heads = thin.size() == 4 && thin[0] == wide[0] && thin[1] == 1 && thin.take_back(2) == wide.take_back(2);
    return heads ? repeat.getInput() : value;
  }
  const bool groups = thin.size() == 5 && wide.size() == 5 && thin[2] == 1 &&
                      thin.take_front(2) == wide.take_front(2) && thin.take_back(2) == wide.take_back(2) &&
                      shapeOf(value)[0] == wide[0] && shapeOf(value).take_back(2) == wide.take_back(2);
  return groups ? viewedAs(repeat.getInput(), {wide[0], wide[1], wide[3], wide[4]}, repeat) : value;
}

/// Whether the constant `mask` lets pass where key <= query and hides the rest.
bool isCausal(Value mask) {
  ArrayRef<int64_t> shape = shapeOf(mask);
  if (shape.size() < 2 || shape[shape.size() - 2] != shape.back() ||
      !llvm::all_of(shape.drop_back(2), [](int64_t size) { return size == 1; }))
    return false;
  const int64_t side = shape.back();
  const auto fits = [&](auto values, auto passes, auto hides) {
    for (int64_t query = 0; query < side; ++query)
      for (int64_t key = 0; key < side; ++key)
        if (auto value = values[query * side + key]; key <= query ? !passes(value) : !hides(value))
          return false;
    return true;
  };
  const auto zero = [](auto value) { return value == 0; };
  const auto low = [](auto value) { return value < hiddenBelow; };
  auto constant = mask.getDefiningOp<train::ConstantOp>();
  if (!constant)
    return false;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue())) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    return blob && resource.getElementType().isF32() && blob->getData().size() == size_t(side * side) * sizeof(float) &&
           fits(blob->getDataAs<float>(), zero, low);
  }
  auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!elements)
    return false;
  if (elements.getElementType().isF32())
    return fits(elements.getValues<float>(), zero, low);
  if (elements.getElementType().isF64())
    return fits(elements.getValues<double>(), zero, low);
  return elements.getElementType().isInteger(1) &&
         fits(elements.getValues<bool>(), [](bool seen) { return seen; }, [](bool seen) { return !seen; });
}

/// What an attention is made of.
struct Parts {
  Value query, key, value, mask;
  double scale = 1;
  bool negated = false; ///< the mask hides where it is true
  bool causal = false;
};

class Regrouping {
public:
  Regrouping(Block &block, const SymbolTable &symbols) : block_(block) {
    for (Operation &op : block) {
      bool active = llvm::any_of(op.getOperands(), [&](Value v) { return active_.contains(v); });
      if (auto read = dyn_cast<train::ReadOp>(op))
        active = symbols.lookup<train::VariableOp>(read.getVariable()).getTrainable();
      if (active)
        active_.insert(op.result_begin(), op.result_end());
    }
  }

  void run() {
    bool found = false;
    for (auto product : llvm::make_early_inc_range(block_.getOps<train::MatmulOp>()))
      if (std::optional<Parts> parts = match(product)) {
        replace(product, *parts);
        found = true;
      }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block_)))
      if (found && isOpTriviallyDead(&op))
        op.erase();
  }

private:
  std::optional<Parts> match(train::MatmulOp product) {
    if (product.getBias() || product.getTransA() || product.getTransB() || shapeOf(product).size() != 4)
      return std::nullopt;
    Value weights = withoutNan(product.getLhs());
    const int64_t uses = weights == product.getLhs() ? 1 : 2; // is_nan, select
    Value seen = withoutHidden(weights);
    Value probabilities = seen ? weights.getDefiningOp<train::SelectOp>().getOnFalse() : weights;
    auto softmax = probabilities.getDefiningOp<train::SoftmaxOp>();
    if (!softmax || int64_t(softmax.getAxis()) != 3 || !product.getLhs().hasOneUse() ||
        int64_t(llvm::range_size(weights.getUses())) != uses || (seen && !probabilities.hasOneUse()))
      return std::nullopt;
    Parts parts;
    if (!matchScores(seen ? seen : softmax.getInput(), parts))
      return std::nullopt;
    parts.key = withoutRepeats(parts.key);
    parts.value = withoutRepeats(product.getRhs());
    ArrayRef<int64_t> query = shapeOf(parts.query), key = shapeOf(parts.key), value = shapeOf(parts.value);
    if (query.size() != 4 || key.size() != 4 || value.size() != 4 || query[0] != key[0] ||
        key.take_front(3) != value.take_front(3) || key[1] == 0 || query[1] % key[1] != 0)
      return std::nullopt;
    return parts;
  }

  /// p where `value` is select(is_nan(p), 0, p); else `value`.
  static Value withoutNan(Value value) {
    auto select = value.getDefiningOp<train::SelectOp>();
    auto isNan = select ? select.getCondition().getDefiningOp<train::IsNanOp>() : train::IsNanOp();
    if (!isNan || isNan.getInput() != select.getOnFalse() || splatConstant(select.getOnTrue()) != 0.0)
      return value;
    return select.getOnFalse();
  }

  /// The scores where `value` is their softmax, with zeros for a row that is hidden as a whole; else null.
  static Value withoutHidden(Value value) {
    auto outer = value.getDefiningOp<train::SelectOp>();
    auto softmax = outer ? outer.getOnFalse().getDefiningOp<train::SoftmaxOp>() : train::SoftmaxOp();
    auto inner = softmax ? softmax.getInput().getDefiningOp<train::SelectOp>() : train::SelectOp();
    if (!inner || inner.getCondition() != outer.getCondition() || splatConstant(outer.getOnTrue()) != 0.0 ||
        splatConstant(inner.getOnTrue()) != 0.0)
      return {};
    auto hidden = inner.getCondition().getDefiningOp<train::EqualOp>();
    auto kept = hidden ? hidden.getLhs().getDefiningOp<train::ReshapeOp>() : train::ReshapeOp();
    auto largest = kept ? kept.getInput().getDefiningOp<train::ReduceMaxOp>() : train::ReduceMaxOp();
    const bool isRow = largest && largest.getInput() == inner.getOnFalse() &&
                       splatConstant(hidden.getRhs()) == -std::numeric_limits<double>::infinity();
    return isRow ? inner.getOnFalse() : Value();
  }

  /// Scores: masks, then scales, then the product of query and key.
  bool matchScores(Value scores, Parts &parts) {
    if (auto add = scores.getDefiningOp<train::AddOp>()) {
      const Parts before = parts;
      if (takeMask(add.getRhs(), false, parts) && matchScores(add.getLhs(), scores, parts))
        return true;
      parts = before;
      return takeMask(add.getLhs(), false, parts) && matchScores(add.getRhs(), scores, parts);
    }
    if (auto select = scores.getDefiningOp<train::SelectOp>()) {
      const bool onTrue = splatConstant(select.getOnTrue()).value_or(0) < hiddenBelow;
      if (!onTrue && !(splatConstant(select.getOnFalse()).value_or(0) < hiddenBelow))
        return false;
      return takeMask(select.getCondition(), onTrue, parts) &&
             matchScores(onTrue ? select.getOnFalse() : select.getOnTrue(), scores, parts);
    }
    auto product = withoutScale(scores, parts.scale).getDefiningOp<train::MatmulOp>();
    if (!product || product.getBias() || product.getTransA())
      return false;
    parts.query = withoutScale(product.getLhs(), parts.scale);
    parts.key = withoutScale(product.getRhs(), parts.scale);
    if (!product.getTransB())
      parts.key = swapped(parts.key);
    parts.key = parts.key ? withoutScale(parts.key, parts.scale) : Value();
    return bool(parts.key);
  }

  /// The same below a mask, which must not have widened the scores.
  bool matchScores(Value scores, Value masked, Parts &parts) {
    return scores.getType() == masked.getType() && matchScores(scores, parts);
  }

  bool takeMask(Value mask, bool negated, Parts &parts) {
    if (!parts.causal && !negated && isCausalOnce(mask))
      return parts.causal = true;
    if (parts.mask || active_.contains(mask) || shapeOf(mask).size() > 4)
      return false;
    parts.mask = mask;
    parts.negated = negated;
    return true;
  }

  /// A causal mask is mostly one for all layers, and long.
  bool isCausalOnce(Value mask) {
    auto [it, inserted] = causal_.try_emplace(mask, false);
    if (inserted)
      it->second = isCausal(mask);
    return it->second;
  }

  static void replace(train::MatmulOp product, const Parts &parts) {
    OpBuilder builder(product);
    Location location = product.getLoc();
    Value mask = parts.negated ? train::NotOp::create(builder, location, parts.mask).getResult() : parts.mask;
    auto attention = train::AttentionOp::create(builder, location, parts.query, parts.key, parts.value, mask,
                                                llvm::APFloat(parts.scale), parts.causal, /*bshd=*/false);
    product.replaceAllUsesWith(attention.getResult());
    product.erase();
  }

  Block &block_;
  llvm::DenseSet<Value> active_; // a trainable variable reaches them; looked up, never iterated
  llvm::DenseMap<Value, bool> causal_;
};

struct RegroupAttention : ds::impl::RegroupAttentionBase<RegroupAttention> {
  void runOnOperation() override {
    const SymbolTable symbols(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block &block : function.getBody())
        Regrouping(block, symbols).run();
  }
};

} // namespace
