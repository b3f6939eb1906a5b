// What the rows of elementwise kernels cannot say.
#include "kernels/elementwise/elementwise_call.h"

namespace ds::kernels {

void checkElementwise(const Call &call, Device) { (void)ElementwiseCall(call); }

} // namespace ds::kernels
