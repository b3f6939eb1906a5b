// What the rows of reductions and softmax cannot say.
#include "kernels/reduce/reduce_call.h"
#include "kernels/reduce/softmax_call.h"

namespace ds::kernels {

void checkReduce(const Call &call, Device) { (void)ReduceCall(call, reductionNamed(call.row().name)); }
void checkSoftmax(const Call &call, Device) { (void)SoftmaxCall(call, call.row().name); }

} // namespace ds::kernels
