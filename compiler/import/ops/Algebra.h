//===- Algebra.h - arithmetic on a node's values ----------------------------------===//
#pragma once

#include "compiler/import/ops/Emit.h"

namespace ds::import {

/// Writes formulas: what is known folds, the rest becomes ops at the node's location. Numbers take the type of the
/// other operand. Not a template per op, so that a file of formulas compiles quickly.
class Algebra {
public:
  explicit Algebra(Node &node) : node_(node) {}

  /// A scalar of any type.
  Value number(DType dtype, double value) const;

  Value add(const Value &x, const Value &y) const;
  Value sub(const Value &x, const Value &y) const;
  Value mul(const Value &x, const Value &y) const;
  Value div(const Value &x, const Value &y) const;
  Value max(const Value &x, const Value &y) const;
  Value min(const Value &x, const Value &y) const;
  Value both(const Value &x, const Value &y) const;
  Value either(const Value &x, const Value &y) const;
  Value exactlyOne(const Value &x, const Value &y) const;
  Value equal(const Value &x, const Value &y) const;
  Value less(const Value &x, const Value &y) const;
  Value greater(const Value &x, const Value &y) const;
  Value power(const Value &x, const Value &y) const;

  Value add(const Value &x, double y) const { return add(x, number(x.dtype, y)); }
  Value sub(const Value &x, double y) const { return sub(x, number(x.dtype, y)); }
  Value mul(const Value &x, double y) const { return mul(x, number(x.dtype, y)); }
  Value div(const Value &x, double y) const { return div(x, number(x.dtype, y)); }
  Value max(const Value &x, double y) const { return max(x, number(x.dtype, y)); }
  Value min(const Value &x, double y) const { return min(x, number(x.dtype, y)); }
  Value equal(const Value &x, double y) const { return equal(x, number(x.dtype, y)); }
  Value less(const Value &x, double y) const { return less(x, number(x.dtype, y)); }
  Value greater(const Value &x, double y) const { return greater(x, number(x.dtype, y)); }

  Value negation(const Value &x) const;
  Value neg(const Value &x) const;
  Value abs(const Value &x) const;
  Value sqrt(const Value &x) const;
  Value exp(const Value &x) const;
  Value log(const Value &x) const;
  Value log1p(const Value &x) const;
  Value expm1(const Value &x) const;
  Value tanh(const Value &x) const;
  Value erf(const Value &x) const;
  Value sigmoid(const Value &x) const;
  Value sin(const Value &x) const;
  Value cos(const Value &x) const;
  Value atan(const Value &x) const;
  Value floor(const Value &x) const;
  Value ceil(const Value &x) const;

  Value choose(const Value &condition, const Value &x, const Value &y) const { return select(node_, condition, x, y); }
  Value choose(const Value &condition, const Value &x, double y) const {
    return choose(condition, x, number(x.dtype, y));
  }
  Value choose(const Value &condition, double x, const Value &y) const {
    return choose(condition, number(y.dtype, x), y);
  }

private:
  Node &node_;
};

} // namespace ds::import
