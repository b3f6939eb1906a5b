// What the rows of convolutions and pools cannot say.
#include "kernels/conv/conv_call.h"
#include "kernels/conv/pool_call.h"

namespace ds::kernels {

void checkConv(const Call &call, Device) { (void)ConvForwardCall(call); }
void checkConvInputGrad(const Call &call, Device) { (void)ConvInputGradCall(call); }
void checkConvWeightGrad(const Call &call, Device) { (void)ConvWeightGradCall(call); }
void checkPool(const Call &call, Device) { (void)PoolCall(call, "x", "y"); }
void checkPoolGrad(const Call &call, Device) { (void)PoolCall(call, "dx", "dy"); }

} // namespace ds::kernels
