// What splitting reductions, and kernels that look along an axis, does.
#include "kernels/Call.h"
#include "kernels/Factors.h"
#include "kernels/reduce/reduce_call.h"

namespace ds::kernels {

void reduceFactors(FactorWriter &to) {
  const Reduction reduction = reductionNamed(to.call.row().name);
  const FactorKind kind = reduction == Reduction::Sum    ? FactorKind::Sum
                          : reduction == Reduction::Mean ? FactorKind::Mean
                                                         : FactorKind::Max;
  const Dimensions x = to.each("x");
  std::vector<bool> isReduced(x.size());
  for (int64_t axis : to.call.integers("axes"))
    isReduced[normalizedAxis(to.call, axis, x.size())] = true;
  Dimensions y;
  for (size_t d = 0; d < x.size(); ++d) {
    if (isReduced[d])
      to.setKind(x[d], kind);
    if (!isReduced[d])
      y.push_back(x[d]);
    else if (to.call.shape("y").size() == x.size()) // kept, as 1
      y.emplace_back();
  }
  to.set("y", y);
}

/// All operands have one shape, and `axis` is whole.
void alongAxisFactors(FactorWriter &to) {
  const Dimensions all = to.each("y");
  to.setKind(all[to.call.axis(to.call.shape("y"))], FactorKind::Whole);
  for (size_t i = 0; i < to.call.operandCount(); ++i)
    to.set(i, all);
}

} // namespace ds::kernels
