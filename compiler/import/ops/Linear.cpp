//===- Linear.cpp - matrix products ----------------------------------------------------------===//
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

namespace ds::import::ops {

/// An operand of a product; a transpose of its last two dimensions becomes a flag.
struct Operand {
  mlir::Value value;
  bool transposed = false;
};

static Operand stripTranspose(mlir::Value value) {
  auto op = value.getDefiningOp<train::TransposeOp>();
  if (!op)
    return {value};
  const llvm::ArrayRef<int64_t> permutation = op.getPerm();
  const auto rank = int64_t(permutation.size());
  for (int64_t i = 0; i + 2 < rank; ++i)
    if (permutation[size_t(i)] != i)
      return {value};
  return {op.getInput(), true}; // not the identity, so it swaps the last two
}

static Value product(Node &node, const Operand &lhs, const Operand &rhs, mlir::Value bias = {}) {
  llvm::SmallVector<mlir::Value, 3> operands{lhs.value, rhs.value};
  if (bias)
    operands.push_back(bias);
  NamedAttrs attributes;
  if (lhs.transposed)
    attributes.push_back(node.builder().getNamedAttr("trans_a", node.builder().getUnitAttr()));
  if (rhs.transposed)
    attributes.push_back(node.builder().getNamedAttr("trans_b", node.builder().getUnitAttr()));
  return Value::of(node.create<train::MatmulOp>(operands, attributes).getResult());
}

/// A vector is a row on the left and a column on the right; that dimension goes from the result.
void matMul(Node &node) {
  Value lhs = node.floatIn(0), rhs = node.floatIn(1);
  if (lhs.rank() == 0 || rhs.rank() == 0)
    throw Failure("a scalar is no operand of a matrix product");
  const bool row = lhs.rank() == 1, column = rhs.rank() == 1;
  if (row)
    lhs = reshape(node, lhs, {1, lhs.shape[0]});
  if (column)
    rhs = reshape(node, rhs, {rhs.shape[0], 1});
  const Value result = product(node, stripTranspose(node.operand(lhs)), stripTranspose(node.operand(rhs)));
  Shape shape = result.shape;
  if (column)
    shape.pop_back();
  if (row)
    shape.erase(shape.end() - (column ? 1 : 2));
  node.set(0, reshape(node, result, shape));
}

static Value scaled(Node &node, const Value &value, double by) {
  return by == 1 ? value : binary<train::MulOp>(node, BinaryFold::Mul, value, floatScalar(value.dtype, by));
}

/// alpha op(A) op(B) + beta C; a C of shape [N] is the product's own bias.
void gemm(Node &node) {
  const Value lhs = node.floatIn(0), rhs = node.floatIn(1);
  if (lhs.rank() != 2 || rhs.rank() != 2)
    throw Failure("the operands must be matrices, not " + toString(lhs.shape) + " and " + toString(rhs.shape));
  const double alpha = node.floatAttr("alpha", 1), beta = node.floatAttr("beta", 1);
  Operand a = stripTranspose(node.operand(lhs)), b = stripTranspose(node.operand(rhs));
  a.transposed ^= node.integerAttr("transA", 0) != 0;
  b.transposed ^= node.integerAttr("transB", 0) != 0;
  const bool hasC = node.has(2) && beta != 0;
  const int64_t columns = rhs.shape[node.integerAttr("transB", 0) != 0 ? 0 : 1];
  if (hasC && alpha == 1 && node.in(2).shape == Shape{columns}) {
    node.floatIn(2);
    node.set(0, product(node, a, b, node.operand(scaled(node, node.in(2), beta))));
    return;
  }
  Value result = scaled(node, product(node, a, b), alpha);
  if (hasC) {
    if (broadcastShape(node.in(2).shape, result.shape) != result.shape)
      throw Failure("C of shape " + toString(node.in(2).shape) + " does not broadcast to the product's " +
                    toString(result.shape));
    result = binary<train::AddOp>(node, BinaryFold::Add, result, scaled(node, node.in(2), beta));
  }
  node.set(0, result);
}

} // namespace ds::import::ops
