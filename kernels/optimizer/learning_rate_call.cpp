#include "kernels/optimizer/learning_rate_call.h"

#include <algorithm>
#include <string>

namespace ds::kernels {

namespace {

Schedule scheduleNamed(const Call &call, const std::string &name) {
  if (name == "constant")
    return Schedule::Constant;
  if (name == "WarmupLR")
    return Schedule::Warmup;
  if (name == "WarmupDecayLR")
    return Schedule::WarmupDecay;
  if (name == "WarmupCosineLR")
    return Schedule::WarmupCosine;
  call.fail("attribute 'schedule' must be constant, WarmupLR, WarmupDecayLR or WarmupCosineLR, not '" + name + "'");
}

} // namespace

LearningRateCall::LearningRateCall(const Call &call) {
  call.expectOperands(2);
  call.expectScalar(0, DType::I64);
  call.expectScalar(1, DType::F64);
  schedule = scheduleNamed(call, call.text("schedule"));
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
  const std::string &type = call.text("warmup_type");
  call.require(type == "log" || type == "linear", "attribute 'warmup_type' must be log or linear, not '" + type + "'");
  logarithmic = type == "log";
  warmup = double(std::max<int64_t>(2, call.integerIn("warmup_num_steps", 0, INT64_MAX)));
  if (schedule != Schedule::Warmup)
    total = double(call.integerIn("total_num_steps", 0, INT64_MAX));
}

} // namespace ds::kernels
