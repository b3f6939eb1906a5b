//===- QuantizeProducts.cpp - products with parameters in 8 bits ------------===//
//
// Of products in bf16 whose dimensions are multiples of 16, those of linear layers: y = x w, and of the backward
// dx = dy w^T and dw = x^T dy. Beside each, both factors are quantized with scales of the numbers at hand. So nothing
// is kept for the backward that was not kept in bf16.
//
// With one scale each, what depends on the gradient of the loss is in E5M2, all else in E4M3 (Micikevicius et al., "FP8
// Formats for Deep Learning", 2022). With `blocks` all is in E4M3: parameters with a scale for each 128 x 128 numbers,
// all else for each 128 along the dimension that is summed (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024).
//
//   1. A parameter stays in bf16 where it is a table (a gather reads it), and where its product makes logits: moved at
//      most, a loss reads it. A tied table is both.
//   2. y: nothing of it depends on train.loss_gradient, and one factor is a parameter, cast or moved at most.
//   3. dx: one factor depends on it, the other is a parameter. dw: one depends on it, and what comes out is added to a
//      gradient of a parameter, cast, moved or added to other parts at most.
// Hopper has such products along the innermost dimension of both factors alone (CUBLAS_OP_T, CUBLAS_OP_N), hence what
// is quantized is transposed on the way where it must be.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseSet.h"

namespace ds {
#define GEN_PASS_DEF_QUANTIZEPRODUCTS
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

constexpr int64_t multiple = 16; // of every dimension: what cuBLASLt asks for

bool movesOrCasts(Operation *op) { return isa<train::CastOp, train::ReshapeOp, train::TransposeOp>(op); }

bool isLoss(Operation *op) { return isa<train::CrossEntropyOp, train::LogSoftmaxOp>(op); }

/// What a walk from `value` through readers for which `passes` holds arrives at.
template <typename Passes> SmallVector<Operation *> readersBehind(Value value, Passes passes) {
  SmallVector<Operation *> arrived;
  SmallVector<Value> open = {value};
  while (!open.empty())
    for (Operation *reader : open.pop_back_val().getUsers())
      if (passes(reader))
        open.push_back(reader->getResult(0));
      else
        arrived.push_back(reader);
  return arrived;
}

struct QuantizeProducts : ds::impl::QuantizeProductsBase<QuantizeProducts> {
  using QuantizeProductsBase::QuantizeProductsBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      findTablesAndLogits(function, symbols);
    for (func::FuncOp function : functions) {
      gradients_.clear();
      for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
        if (isa<train::LossGradientOp>(op) ||
            llvm::any_of(op.getOperands(), [&](Value value) { return gradients_.contains(value); }))
          gradients_.insert_range(op.getResults());
        if (auto product = dyn_cast<train::MatmulOp>(op); product && isOfLayer(product, symbols) && fits(product))
          quantize(product, symbols);
      }
    }
  }

private:
  /// The parameter that `value` is, cast or moved at most; or null.
  static train::VariableOp parameterOf(Value value, const SymbolTable &symbols) {
    Operation *op = value.getDefiningOp();
    while (op && movesOrCasts(op))
      op = op->getOperand(0).getDefiningOp();
    auto read = dyn_cast_if_present<train::ReadOp>(op);
    auto variable = read ? symbols.lookup<train::VariableOp>(read.getVariable()) : train::VariableOp();
    return variable && variable.getKind() == train::VariableKind::Parameter ? variable : train::VariableOp();
  }

  void findTablesAndLogits(func::FuncOp function, const SymbolTable &symbols) {
    function.walk([&](train::GatherOp gather) {
      if (train::VariableOp table = parameterOf(gather.getData(), symbols))
        kept_.insert(table.getSymNameAttr());
    });
    const auto moves = [](Operation *op) { return movesOrCasts(op) || isa<train::SliceOp, train::PadOp>(op); };
    function.walk([&](train::MatmulOp product) {
      for (Value factor : {product.getLhs(), product.getRhs()})
        if (train::VariableOp parameter = parameterOf(factor, symbols);
            parameter && llvm::any_of(readersBehind(product.getResult(), moves), isLoss))
          kept_.insert(parameter.getSymNameAttr());
    });
  }

  bool isOfLayer(train::MatmulOp product, const SymbolTable &symbols) const {
    const bool left = gradients_.contains(product.getLhs()), right = gradients_.contains(product.getRhs());
    if (left && right)
      return false;
    for (auto [factor, isGradient] : {std::pair(product.getLhs(), left), {product.getRhs(), right}})
      if (train::VariableOp parameter = parameterOf(factor, symbols); parameter && !isGradient)
        return !kept_.contains(parameter.getSymNameAttr());
    return (left || right) && isGradientOfParameter(product.getResult(), symbols);
  }

  bool isGradientOfParameter(Value value, const SymbolTable &symbols) const {
    const auto passes = [](Operation *op) { return movesOrCasts(op) || isa<train::AddOp>(op); };
    return llvm::all_of(readersBehind(value, passes), [&](Operation *reader) {
      auto accumulate = dyn_cast<train::AccumulateOp>(reader);
      auto sum = accumulate ? symbols.lookup<train::VariableOp>(accumulate.getVariable()) : train::VariableOp();
      return sum && sum.getOf() && !kept_.contains(sum.getOfAttr().getAttr());
    });
  }

  /// Two matrices of bf16, of which the first may have leading dimensions that are rows.
  static bool fits(train::MatmulOp product) {
    auto lhs = cast<RankedTensorType>(product.getLhs().getType()),
         rhs = cast<RankedTensorType>(product.getRhs().getType());
    const bool areMatrices = rhs.getRank() == 2 && (lhs.getRank() == 2 || !product.getTransA());
    const int64_t columns = lhs.getShape().back();
    return areMatrices && lhs.getElementType().isBF16() && columns > 0 && columns % multiple == 0 &&
           lhs.getNumElements() > 0 && lhs.getNumElements() / columns % multiple == 0 &&
           llvm::all_of(rhs.getShape(), [](int64_t size) { return size > 0 && size % multiple == 0; });
  }

  /// `block`: null for one scale.
  train::QuantizeFp8Op quantized(OpBuilder &builder, Location location, Value factor, StringAttr block,
                                 bool transposed) const {
    const StringRef format = !block && gradients_.contains(factor) ? "e5m2" : "e4m3";
    auto type = cast<RankedTensorType>(factor.getType());
    if (type.getRank() > 2) {
      const int64_t columns = type.getShape().back();
      const int64_t shape[] = {type.getNumElements() / columns, columns};
      factor = train::ReshapeOp::create(builder, location, factor, ArrayRef<int64_t>(shape));
    }
    return train::QuantizeFp8Op::create(builder, location, factor, builder.getStringAttr(format), block,
                                        transposed ? builder.getUnitAttr() : UnitAttr());
  }

  void quantize(train::MatmulOp product, const SymbolTable &symbols) {
    OpBuilder builder(product);
    const Location location = product.getLoc();
    StringAttr aBlock, bBlock;
    if (blocks) { // not both squares, which cuBLASLt does not have
      const bool isSquare = bool(parameterOf(product.getLhs(), symbols));
      aBlock = builder.getStringAttr(isSquare ? "128x128" : "1x128");
      bBlock = builder.getStringAttr(!isSquare && parameterOf(product.getRhs(), symbols) ? "128x128" : "1x128");
    }
    auto a = quantized(builder, location, product.getLhs(), aBlock, product.getTransA());
    auto b = quantized(builder, location, product.getRhs(), bBlock, !product.getTransB());
    Value result = train::Fp8MatmulOp::create(builder, location, a.getCodes(), a.getScale(), b.getCodes(), b.getScale(),
                                              product.getBias(), a.getFormatAttr(), b.getFormatAttr(), aBlock, bBlock,
                                              product.getWideAttr());
    const ArrayRef<int64_t> shape = cast<RankedTensorType>(product.getType()).getShape();
    if (shape.size() > 2)
      result = train::ReshapeOp::create(builder, location, result, shape);
    if (gradients_.erase(product.getResult()))
      gradients_.insert(result);
    product.replaceAllUsesWith(result);
    product.erase();
  }

  llvm::DenseSet<StringAttr> kept_; ///< parameters whose products stay in bf16; looked up, never iterated
  llvm::DenseSet<Value> gradients_; ///< what depends on the gradient of the loss; looked up, never iterated
};

} // namespace
