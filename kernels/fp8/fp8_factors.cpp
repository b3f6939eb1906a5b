// What splitting products of 8 bits does: the contracted size is summed. Codes of a part would have another scale.
#include "kernels/Call.h"
#include "kernels/Factors.h"

namespace ds::kernels {

void fp8MatmulFactors(FactorWriter &to) {
  const Dimensions c = to.each("c");
  const FactorKind summed = to.call.flag("bias") ? FactorKind::Whole : FactorKind::Sum; // else parts are no summands
  const Dimension k = {to.factor(to.call.shape("a")[1], summed)};
  to.set("a", {c[0], k});
  to.set("b", {c[1], k});
  if (to.call.flag("bias"))
    to.set("bias", {c[1]});
}

} // namespace ds::kernels
