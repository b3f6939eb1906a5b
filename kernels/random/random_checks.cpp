// What the rows of random numbers cannot say.
#include "kernels/random/dropout_call.h"
#include "kernels/random/uniform_call.h"

namespace ds::kernels {

void checkDropout(const Call &call, Device) { (void)DropoutCall(call); }
void checkUniform(const Call &call, Device) { (void)UniformCall(call); }

} // namespace ds::kernels
