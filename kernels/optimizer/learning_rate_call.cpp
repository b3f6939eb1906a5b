#include "kernels/optimizer/learning_rate_call.h"

#include <algorithm>
#include <string>

namespace ds::kernels {

namespace {

Schedule scheduleNamed(std::string_view name) {
  if (name == "constant")
    return Schedule::Constant;
  if (name == "WarmupLR")
    return Schedule::Warmup;
  if (name == "WarmupDecayLR")
    return Schedule::WarmupDecay;
  return Schedule::WarmupCosine;
}

} // namespace

LearningRateCall::LearningRateCall(const Call &call) {
  schedule = scheduleNamed(call.text("schedule"));
  if (schedule == Schedule::Constant || schedule == Schedule::WarmupCosine)
    lr = call.number("lr");
  if (schedule == Schedule::Constant)
    return;
  if (schedule == Schedule::WarmupCosine) {
    minRatio = call.number("warmup_min_ratio");
    cosMinRatio = call.number("cos_min_ratio");
  } else {
    minimum = call.number("warmup_min_lr");
    maximum = call.number("warmup_max_lr");
  }
  call.require(call.has("warmup_type"), "needs attribute 'warmup_type'");
  logarithmic = call.text("warmup_type") == "log";
  warmup = double(std::max<int64_t>(2, call.integerIn("warmup_num_steps", 0, INT64_MAX)));
  if (schedule != Schedule::Warmup)
    total = double(call.integerIn("total_num_steps", 0, INT64_MAX));
}

} // namespace ds::kernels
