// What splitting a loss does: rows are summed, but of a mean a part does not know how many labels count.
#include "kernels/Call.h"
#include "kernels/Factors.h"

namespace ds::kernels {

void crossEntropyFactors(FactorWriter &to) {
  const Call &call = to.call;
  const Dimensions logits = to.each("logits", FactorKind::Whole);
  if (call.text("reduction") == "sum")
    to.setKind(logits[0], call.hasOperand("loss") ? FactorKind::Sum : FactorKind::Pass);
  if (call.hasOperand("dlogits"))
    to.set("dlogits", logits);
  for (const char *name : {"labels", "lse"})
    to.set(name, {logits[0]});
}

} // namespace ds::kernels
