//===- PackHeads.cpp - let attention read query, key and value in one tensor ---===//
//
// One product makes query, key and value, [batch, sequence, 3 * heads * depth] or fewer groups of key and value, and
// slices cut it up. Where attention's operands are such slices side by side, it reads them where they are, and its
// gradient writes one tensor: the slices go, and the concatenation of their gradients. Cf. qkvpacked_func of
// FlashAttention (Dao, 2023).
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

namespace ds {
#define GEN_PASS_DEF_PACKHEADS
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Elements [begin, end) of each row of `width` elements of a tensor.
struct Part {
  Value tensor;
  int64_t begin, end, width;
};

int64_t product(ArrayRef<int64_t> sizes) { return ShapedType::getNumElements(sizes); }

/// The part that a slice along one dimension cuts out, if all dimensions before it make `rows` rows.
std::optional<Part> partOf(train::SliceOp slice, int64_t rows) {
  ArrayRef<int64_t> shape = slice.getInput().getType().getShape();
  std::optional<size_t> axis;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (slice.getSizes()[d] == shape[d])
      continue;
    if (axis || slice.getSteps()[d] != 1)
      return {};
    axis = d;
  }
  if (!axis || product(shape.take_front(*axis)) != rows)
    return {};
  const int64_t inner = product(shape.drop_front(*axis + 1)), begin = slice.getStarts()[*axis];
  return Part{slice.getInput(), begin * inner, (begin + slice.getSizes()[*axis]) * inner, shape[*axis] * inner};
}

/// The part that an operand [batch, sequence, heads, depth] is, through reshapes.
std::optional<Part> partOf(TypedValue<RankedTensorType> operand) {
  const int64_t rows = product(operand.getType().getShape().take_front(2));
  Value value = operand;
  while (auto reshape = value.getDefiningOp<train::ReshapeOp>())
    value = reshape.getInput();
  auto slice = value.getDefiningOp<train::SliceOp>();
  return slice ? partOf(slice, rows) : std::nullopt;
}

/// The tensor that query, key and value make up in this order; null where there is none.
Value packedTensor(train::AttentionOp op) {
  auto query = op.getQuery().getType(), key = op.getKey().getType();
  if (!op.getBshd() || key != op.getValue().getType() || query.getDimSize(1) != key.getDimSize(1))
    return {};
  const auto q = partOf(op.getQuery()), k = partOf(op.getKey()), v = partOf(op.getValue());
  const bool isWhole = q && k && v && q->tensor == k->tensor && k->tensor == v->tensor && q->begin == 0 &&
                       q->end == k->begin && k->end == v->begin && v->end == v->width;
  return isWhole ? q->tensor : Value();
}

/// Of what makes `value`, what nothing reads any more.
void eraseUnread(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && op->use_empty() && isa<train::ReshapeOp, train::SliceOp>(op)) {
    Operation *before = op->getOperand(0).getDefiningOp();
    op->erase();
    op = before;
  }
}

void pack(train::AttentionOp op, Value tensor) {
  const Value operands[] = {op.getQuery(), op.getKey(), op.getValue()};
  auto query = op.getQuery().getType(), key = op.getKey().getType();
  const int64_t heads = query.getDimSize(2), groups = key.getDimSize(2);
  const int64_t shape[] = {query.getDimSize(0), query.getDimSize(1), heads + 2 * groups, query.getDimSize(3)};
  OpBuilder builder(op);
  const Value qkv = train::ReshapeOp::create(builder, op.getLoc(), tensor, shape);
  auto packed =
      train::PackedAttentionOp::create(builder, op.getLoc(), qkv, op.getMask(), heads, op.getScale(), op.getCausal());
  op.replaceAllUsesWith(packed);
  op.erase();
  for (Value operand : operands)
    eraseUnread(operand);
}

struct PackHeads : ds::impl::PackHeadsBase<PackHeads> {
  void runOnOperation() override {
    SmallVector<train::AttentionOp> attentions;
    getOperation().walk([&](train::AttentionOp op) { attentions.push_back(op); });
    for (train::AttentionOp op : attentions)
      if (Value tensor = packedTensor(op))
        pack(op, tensor);
  }
};

} // namespace
