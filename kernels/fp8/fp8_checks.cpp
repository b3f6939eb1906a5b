// What the rows of numbers in 8 bits cannot say.
#include "kernels/fp8/fp8_call.h"

namespace ds::kernels {

void checkQuantizeFp8(const Call &call, Device device) {
  (void)QuantizeFp8Call(call);
  call.requireWorkspace(device);
}
void checkFp8Matmul(const Call &call, Device) { (void)Fp8MatmulCall(call); }

} // namespace ds::kernels
