// What the rows of norms of gradients cannot say.
#include "kernels/clip/block_sum_squares_call.h"
#include "kernels/clip/clip_factor_call.h"
#include "kernels/clip/global_norm_call.h"

namespace ds::kernels {

void checkBlockSumSquares(const Call &call, Device) { (void)BlockSumSquaresCall(call); }
void checkGlobalNorm(const Call &call, Device) { (void)GlobalNormCall(call); }
void checkClipFactor(const Call &call, Device) { (void)ClipFactorCall(call); }

} // namespace ds::kernels
