// What splitting norms of rows does: rows pass, but gradients of gamma and beta are sums over rows.
#include "kernels/Call.h"
#include "kernels/Factors.h"

namespace ds::kernels {

void normFactors(FactorWriter &to) {
  const Call &call = to.call;
  const Dimensions x = to.each("x", call.hasOperand("dgamma") ? FactorKind::Sum : FactorKind::Pass);
  to.setKind(x.back(), FactorKind::Whole);
  const Dimensions leading(x.begin(), x.end() - 1);
  Dimension rows; // as one dimension
  for (const Dimension &dimension : leading)
    rows.insert(rows.end(), dimension.begin(), dimension.end());
  for (const char *name : {"y", "dy", "dx", "residual", "sum", "rounded"})
    if (call.hasOperand(name))
      to.set(name, x);
  for (const char *name : {"gamma", "beta", "dgamma", "dbeta"})
    if (call.hasOperand(name))
      to.set(name, {x.back()});
  for (const char *name : {"mean", "rstd", "rrms"})
    if (call.hasOperand(name))
      to.set(name, call.shape(name).size() == 1 ? Dimensions{rows} : leading);
}

} // namespace ds::kernels
