// What the rows of attention cannot say.
#include "kernels/attention/attention_call.h"

namespace ds::kernels {

void checkAttention(const Call &call, Device) { (void)AttentionCall(call); }

} // namespace ds::kernels
