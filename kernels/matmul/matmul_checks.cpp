// What the rows of products cannot say.
#include "kernels/matmul/linear_weight_grad_call.h"
#include "kernels/matmul/matmul_call.h"

namespace ds::kernels {

void checkMatmul(const Call &call, Device) { (void)MatmulCall(call); }
void checkLinearWeightGrad(const Call &call, Device) { (void)LinearWeightGradCall(call); }

} // namespace ds::kernels
