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
  if (name == "WarmupCosineLR")
    return Schedule::WarmupCosine;
  return name == "OneCycle" ? Schedule::OneCycle : Schedule::RangeTest;
}

} // namespace

void LearningRateCall::readRangeTest(const Call &call) {
  minimum = call.number("lr_range_test_min_lr");
  rate = call.number("lr_range_test_step_rate");
  size = double(call.integerIn("lr_range_test_step_size", 1, INT64_MAX));
  staircase = call.flag("lr_range_test_staircase");
}

void LearningRateCall::readOneCycle(const Call &call) {
  minimum = call.number("cycle_min_lr");
  maximum = call.number("cycle_max_lr");
  rate = call.number("decay_lr_rate");
  cycle = OneCycle(call);
}

LearningRateCall::LearningRateCall(const Call &call) {
  schedule = scheduleNamed(call.text("schedule"));
  if (schedule == Schedule::RangeTest)
    readRangeTest(call);
  else if (schedule == Schedule::OneCycle)
    readOneCycle(call);
  else if (schedule == Schedule::Constant)
    lr = call.number("lr");
  else
    readWarmup(call);
}

void LearningRateCall::readWarmup(const Call &call) {
  if (schedule == Schedule::WarmupCosine)
    lr = call.number("lr");
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
