// What splitting an elementwise kernel does: everything passes, and inputs broadcast.
#include "kernels/Call.h"
#include "kernels/Factors.h"

namespace ds::kernels {

void elementwiseFactors(FactorWriter &to) {
  const size_t operands = to.call.operandCount(), inputs = operands - to.call.integers("results").size();
  const Dimensions result = to.each(inputs);
  for (size_t i = 0; i < operands; ++i)
    to.set(i, result);
}

} // namespace ds::kernels
