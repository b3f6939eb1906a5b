// What the rows of norms cannot say.
#include "kernels/norm/batch_norm_call.h"
#include "kernels/norm/layer_norm_call.h"
#include "kernels/norm/rms_norm_call.h"

namespace ds::kernels {

void checkLayerNorm(const Call &call, Device) { (void)LayerNormCall(call); }
void checkLayerNormGrad(const Call &call, Device device) { (void)LayerNormGradCall(call, device); }
void checkRmsNorm(const Call &call, Device) { (void)RmsNormCall(call); }
void checkRmsNormGrad(const Call &call, Device device) { (void)RmsNormGradCall(call, device); }
void checkBatchNorm(const Call &call, Device) { (void)BatchNormCall(call); }

} // namespace ds::kernels
