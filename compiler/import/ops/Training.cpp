//===- Training.cpp - Gradient and the optimizers of ONNX's training domain ---------------------===//
//
// The optimizers are arithmetic on their operands, which fuses to one loop a tensor. Their formulas are ONNX's, not
// PyTorch's: no weight decay apart from the gradient, epsilon outside of Adam's bias correction.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

#include "llvm/ADT/DenseSet.h"

namespace ds::import::ops {

static std::vector<std::string> names(Node &node, const std::string &attribute) {
  const onnx::AttributeProto *found = node.attribute(attribute, 8);
  return found ? std::vector<std::string>(found->strings().begin(), found->strings().end())
               : std::vector<std::string>();
}

/// Whether `value` was computed from a derivative.
static bool followsFromGradient(mlir::Value value) {
  llvm::SmallVector<mlir::Value> left{value};
  llvm::DenseSet<mlir::Operation *> seen;
  while (!left.empty()) {
    mlir::Operation *op = left.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (mlir::isa<train::GradientOp>(op))
      return true;
    left.append(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// Attributes xs, zs and y name values; the inputs are their present values, here always the values themselves.
void gradient(Node &node) {
  const std::vector<std::string> xs = names(node, "xs"), zs = names(node, "zs");
  const std::string y = node.stringAttr("y", "");
  if (xs.empty() || y.empty())
    throw Failure("needs the attributes xs and y: what to differentiate by, and what is differentiated");
  if (node.inputs() != xs.size() + zs.size() + 1) // y was made the last
    throw Failure("has " + std::to_string(node.inputs() - 1) + " inputs for " + std::to_string(xs.size() + zs.size()) +
                  " names in xs and zs");
  llvm::SmallVector<mlir::Value> variables, fixed;
  llvm::DenseSet<mlir::Value> distinct;
  for (size_t i = 0; i < xs.size() + zs.size(); ++i) {
    const std::string &name = i < xs.size() ? xs[i] : zs[i - xs.size()];
    if (node.proto().input(int(i)) != name)
      throw Failure("input " + std::to_string(i) + " is '" + node.proto().input(int(i)) + "', but xs and zs name '" +
                    name + "' there; derivatives at other values than the named ones are not supported");
    const mlir::Value value = node.operand(i < xs.size() ? node.floatIn(i) : node.in(i));
    if (!distinct.insert(value).second)
      throw Failure("xs and zs name '" + name + "' twice");
    (i < xs.size() ? variables : fixed).push_back(value);
  }
  const mlir::Value target = node.operand(node.floatIn(xs.size() + zs.size()));
  if (followsFromGradient(target))
    throw Failure("y '" + y + "' depends on another Gradient node; derivatives of derivatives are not supported");
  llvm::SmallVector<mlir::Type> types;
  for (mlir::Value variable : variables)
    types.push_back(variable.getType());
  auto op = train::GradientOp::create(node.builder(), node.location(), types, target, variables, fixed);
  for (size_t i = 0; i < std::min(node.outputs(), xs.size()); ++i)
    node.set(i, Value::of(op.getResult(unsigned(i))));
}

namespace {

/// R, T and groups of tensors of as many members each: X.., G.., and states.
class Step {
public:
  Step(Node &node, size_t groups) : node_(node) {
    if (node.inputs() < 2 + groups || (node.inputs() - 2) % groups != 0)
      throw Failure("has " + std::to_string(node.inputs()) + " inputs, which are not R, T and " +
                    std::to_string(groups) + " groups of as many tensors each");
    count_ = (node.inputs() - 2) / groups;
    for (size_t i = 0; i < 2; ++i)
      if (elementCount(node.in(i).shape) != 1)
        throw Failure("input " + std::to_string(i) + " must be one number, not " + toString(node.in(i).shape));
    rate_ = reshape(node, cast(node, node.floatIn(0), DType::F64), {});
    count64_ = reshape(node, cast(node, node.in(1), DType::F64), {});
  }

  size_t tensors() const { return count_; }
  /// Member `i` of a group; all members `i` have one type and shape.
  Value member(size_t group, size_t i) {
    const Value value = node_.floatIn(2 + group * count_ + i), first = node_.floatIn(2 + i);
    if (value.dtype != first.dtype || value.shape != first.shape)
      throw Failure("input " + std::to_string(2 + group * count_ + i) + " is " + std::string(ds::name(value.dtype)) +
                    " " + toString(value.shape) + ", but the tensor that it belongs to is " +
                    std::string(ds::name(first.dtype)) + " " + toString(first.shape));
    return value;
  }
  void set(size_t group, size_t i, Value value) { node_.set(group * count_ + i, std::move(value)); }

  // Scalars in float64, the numbers of a whole step.
  const Value &rate() const { return rate_; }
  const Value &count() const { return count64_; }
  Value number(double value) { return floatScalar(DType::F64, value); }
  /// T > 0 ? later : first
  Value afterFirst(const Value &later, const Value &first) {
    Value isLater = binary<train::GreaterOp>(node_, BinaryFold::Greater, count64_, number(0));
    return select(node_, isLater, later, first);
  }
  /// A float64 scalar in the type of `like`.
  Value as(const Value &scalar, const Value &like) { return cast(node_, scalar, like.dtype); }

  Value add(const Value &a, const Value &b) { return binary<train::AddOp>(node_, BinaryFold::Add, a, b); }
  Value sub(const Value &a, const Value &b) { return binary<train::SubOp>(node_, BinaryFold::Sub, a, b); }
  Value mul(const Value &a, const Value &b) { return binary<train::MulOp>(node_, BinaryFold::Mul, a, b); }
  Value div(const Value &a, const Value &b) { return binary<train::DivOp>(node_, BinaryFold::Div, a, b); }
  Value pow(const Value &a, const Value &b) { return binary<train::PowOp>(node_, BinaryFold::Pow, a, b); }
  Value sqrt(const Value &a) { return unary<train::SqrtOp>(node_, UnaryFold::Sqrt, a); }
  Value times(double factor, const Value &value) { return mul(floatScalar(value.dtype, factor), value); }
  /// G + norm_coefficient * X
  Value regularized(const Value &g, const Value &x) {
    const double coefficient = node_.floatAttr("norm_coefficient", 0);
    return coefficient == 0 ? g : add(g, times(coefficient, x));
  }

private:
  Node &node_;
  size_t count_ = 0;
  Value rate_, count64_;
};

} // namespace

void adam(Node &node) {
  Step step(node, 4);
  const double alpha = node.floatAttr("alpha", 0.9), beta = node.floatAttr("beta", 0.999);
  const double epsilon = node.floatAttr("epsilon", 1e-6), post = node.floatAttr("norm_coefficient_post", 0);
  // R * sqrt(1 - beta^T) / (1 - alpha^T), from the second step on
  const Value second = step.sqrt(step.sub(step.number(1), step.pow(step.number(beta), step.count())));
  const Value first = step.sub(step.number(1), step.pow(step.number(alpha), step.count()));
  const Value corrected = step.div(step.mul(step.rate(), second), first);
  const Value rate64 = step.afterFirst(corrected, step.rate());
  for (size_t i = 0; i < step.tensors(); ++i) {
    const Value x = step.member(0, i), g = step.regularized(step.member(1, i), x);
    const Value fresh = step.times(1 - alpha, g), v = step.add(step.times(alpha, step.member(2, i)), fresh);
    const Value squared = step.times(1 - beta, step.mul(g, g)),
                h = step.add(step.times(beta, step.member(3, i)), squared);
    const Value scale = step.add(step.sqrt(h), floatScalar(x.dtype, epsilon));
    const Value moved = step.sub(x, step.div(step.mul(step.as(rate64, x), v), scale));
    step.set(0, i, post == 0 ? moved : step.times(1 - post, moved));
    step.set(1, i, v);
    step.set(2, i, h);
  }
}

void adagrad(Node &node) {
  Step step(node, 3);
  const double decay = node.floatAttr("decay_factor", 0), epsilon = node.floatAttr("epsilon", 1e-6);
  const Value slowed = step.add(step.number(1), step.times(decay, step.count()));
  const Value rate64 = step.div(step.rate(), slowed);
  for (size_t i = 0; i < step.tensors(); ++i) {
    const Value x = step.member(0, i), g = step.regularized(step.member(1, i), x);
    const Value h = step.add(step.member(2, i), step.mul(g, g));
    const Value scale = step.add(step.sqrt(h), floatScalar(x.dtype, epsilon));
    step.set(0, i, step.sub(x, step.div(step.mul(step.as(rate64, x), g), scale)));
    step.set(1, i, h);
  }
}

void momentum(Node &node) {
  Step step(node, 3);
  const std::string mode = node.stringAttr("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    throw Failure("mode '" + mode + "' is neither 'standard' nor 'nesterov'");
  const double alpha = node.floatAttr("alpha", 0.9);
  const Value beta64 = step.afterFirst(step.number(node.floatAttr("beta", 1)), step.number(1));
  for (size_t i = 0; i < step.tensors(); ++i) {
    const Value x = step.member(0, i), g = step.regularized(step.member(1, i), x);
    const Value fresh = step.mul(step.as(beta64, x), g), v = step.add(step.times(alpha, step.member(2, i)), fresh);
    const Value direction = mode == "nesterov" ? step.add(g, step.times(alpha, v)) : v;
    step.set(0, i, step.sub(x, step.mul(step.as(step.rate(), x), direction)));
    step.set(1, i, v);
  }
}

} // namespace ds::import::ops
