// What the rows of updates cannot say.
#include "kernels/optimizer/adagrad_call.h"
#include "kernels/optimizer/adamw_call.h"
#include "kernels/optimizer/cycled_momentum_call.h"
#include "kernels/optimizer/lamb_call.h"
#include "kernels/optimizer/learning_rate_call.h"
#include "kernels/optimizer/lion_call.h"
#include "kernels/optimizer/sgd_call.h"

namespace ds::kernels {

void checkAdamW(const Call &call, Device) { (void)AdamWCall(call); }
void checkSgd(const Call &call, Device) { (void)SgdCall(call); }
void checkAdagrad(const Call &call, Device) { (void)AdagradCall(call); }
void checkLion(const Call &call, Device) { (void)LionCall(call); }
void checkLamb(const Call &call, Device) { (void)LambCall(call); }
void checkLearningRate(const Call &call, Device) { (void)LearningRateCall(call); }
void checkCycledMomentum(const Call &call, Device) { (void)CycledMomentumCall(call); }

} // namespace ds::kernels
