// What splitting a product does: sizes that are contracted are summed.
#include "kernels/Call.h"
#include "kernels/Factors.h"

#include <utility>

namespace ds::kernels {

void matmulFactors(FactorWriter &to) {
  const Call &call = to.call;
  const bool isLinear = !call.flag("bias") && call.text("epilogue") != "gelu_tanh"; // else parts would be no summands
  const bool transA = call.flag("trans_a");
  const Dimensions c = to.each("c");
  const Shape &a = call.shape("a");
  const Dimension k = {to.factor(a[a.size() - (transA ? 2 : 1)], isLinear ? FactorKind::Sum : FactorKind::Whole)};
  Dimensions left = c, right = c;
  left.back() = right[c.size() - 2] = k;
  if (transA)
    std::swap(left[c.size() - 2], left.back());
  if (call.flag("trans_b"))
    std::swap(right[c.size() - 2], right.back());
  to.set("a", left);
  to.set("b", right);
  if (call.hasOperand("bias"))
    to.set("bias", {c.back()});
  if (call.hasOperand("aux"))
    to.set("aux", c);
}

void linearWeightGradFactors(FactorWriter &to) {
  const Dimensions dy = to.each("dy"), x = {dy[0], {to.factor(to.call.shape("x")[1])}};
  to.setKind(dy[0], FactorKind::Sum);
  to.set("x", x);
  to.set("dw", to.call.flag("transposed") ? Dimensions{dy[1], x[1]} : Dimensions{x[1], dy[1]});
  to.set("db", {dy[1]});
}

} // namespace ds::kernels
