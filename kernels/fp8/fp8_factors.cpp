// What splitting quantizing and products of 8 bits does: codes of a part would have another scale, unless that is of a
// line; the contracted size is summed.
#include "kernels/Factors.h"
#include "kernels/fp8/fp8_call.h"

namespace ds::kernels {

namespace {

/// Lines may be cut where each has scales of its own, or all have the same.
FactorKind kindOfLines(const Float8Scales &scales) {
  return scales.block == Float8Block::Square && scales.rows() > 1 ? FactorKind::Whole : FactorKind::Pass;
}

} // namespace

void quantizeFp8Factors(FactorWriter &to) {
  const QuantizeFp8Call call(to.call);
  const bool isByLine = call.scales.block == Float8Block::Line;
  const Dimensions q = to.each("q", FactorKind::Whole);
  to.set("x", call.transposed ? Dimensions{q[1], q[0]} : q);
  if (isByLine) {
    to.setKind(q[0], FactorKind::Pass);
    to.set("scale", {{to.factor(call.scales.rows(), FactorKind::Whole)}, q[0]});
  } else {
    to.each("scale", FactorKind::Whole);
  }
}

void fp8MatmulFactors(FactorWriter &to) {
  const Fp8MatmulCall call(to.call);
  const Dimensions c = to.each("c");
  to.setKind(c[0], kindOfLines(call.aScales));
  to.setKind(c[1], kindOfLines(call.bScales));
  // With a bias parts are no summands; a block may not be cut.
  const bool isSum = !call.hasBias && !call.isBlocked();
  const Dimension k = {to.factor(call.k, isSum ? FactorKind::Sum : FactorKind::Whole)};
  to.set("a", {c[0], k});
  to.set("b", {c[1], k});
  for (const auto &[scales, name, lines] :
       {std::tuple(call.aScales, "a_scale", c[0]), std::tuple(call.bScales, "b_scale", c[1])})
    if (scales.block == Float8Block::Line)
      to.set(name, {{to.factor(scales.rows(), FactorKind::Whole)}, lines});
    else
      to.each(name, FactorKind::Whole);
  if (call.hasBias)
    to.set("bias", {c[1]});
}

} // namespace ds::kernels
