// learning_rate: the rate of update number j = step (from 0), in float64, DeepSpeed's schedules.
//
// With i = j - 1, w = max(2, warmup_num_steps), T = total_num_steps and the warm-up curve
//   g(i) = ln(i + 1) / ln(w) (warmup_type "log") or i / w ("linear"), for i < w:
//   constant        lr
//   WarmupLR        min at j = 0; min + (max - min) g; then max
//   WarmupDecayLR   as WarmupLR, but from i = w on g = max(0, (T - i) / max(1, T - w))
//   WarmupCosineLR  lr times: 0 at j = 0; r0 + (1 - r0) g; then c + (1 - c) (1 + cos(pi q)) / 2
//                   with q = min(1, (i - w + 1) / max(1, T - w)), r0 = warmup_min_ratio, c = cos_min_ratio
#include "kernels/cpu/Call.h"
#include "kernels/cpu/Factories.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ds::kernels {

namespace {

enum class Schedule { Constant, Warmup, WarmupDecay, WarmupCosine };

struct LearningRateCall {
  Schedule schedule = Schedule::Constant;
  double lr = 0;
  double minimum = 0, maximum = 0;      // WarmupLR, WarmupDecayLR
  double minRatio = 0, cosMinRatio = 0; // WarmupCosineLR
  bool logarithmic = true;
  double warmup = 2, total = 0;
};

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

LearningRateCall parse(const Call &call) {
  LearningRateCall parsed;
  parsed.schedule = scheduleNamed(call, call.text("schedule"));
  if (parsed.schedule == Schedule::Constant || parsed.schedule == Schedule::WarmupCosine)
    parsed.lr = call.number("lr");
  if (parsed.schedule == Schedule::Constant)
    return parsed;
  if (parsed.schedule == Schedule::WarmupCosine) {
    parsed.minRatio = call.number("warmup_min_ratio");
    parsed.cosMinRatio = call.number("cos_min_ratio");
  } else {
    parsed.minimum = call.number("warmup_min_lr");
    parsed.maximum = call.number("warmup_max_lr");
  }
  const std::string &type = call.text("warmup_type");
  call.require(type == "log" || type == "linear", "attribute 'warmup_type' must be log or linear, not '" + type + "'");
  parsed.logarithmic = type == "log";
  parsed.warmup = double(std::max<int64_t>(2, call.integerIn("warmup_num_steps", 0, INT64_MAX)));
  if (parsed.schedule != Schedule::Warmup)
    parsed.total = double(call.integerIn("total_num_steps", 0, INT64_MAX));
  return parsed;
}

/// The rate of update number j >= 0.
double rateOf(const LearningRateCall &call, int64_t j) {
  if (call.schedule == Schedule::Constant)
    return call.lr;
  const bool cosine = call.schedule == Schedule::WarmupCosine;
  if (j == 0)
    return cosine ? 0 : call.minimum;
  const double i = double(j - 1), decaySteps = std::max(1.0, call.total - call.warmup);
  if (i < call.warmup) {
    const double g = call.logarithmic ? std::log(i + 1) / std::log(call.warmup) : i / call.warmup;
    return cosine ? call.lr * (call.minRatio + (1 - call.minRatio) * g)
                  : call.minimum + (call.maximum - call.minimum) * g;
  }
  if (cosine) {
    const double q = std::min(1.0, (i - call.warmup + 1) / decaySteps);
    return call.lr * (call.cosMinRatio + (1 - call.cosMinRatio) * (1 + std::cos(std::numbers::pi * q)) / 2);
  }
  if (call.schedule == Schedule::Warmup)
    return call.maximum;
  return call.minimum + (call.maximum - call.minimum) * std::max(0.0, (call.total - i) / decaySteps);
}

class LearningRate : public Kernel {
public:
  explicit LearningRate(LearningRateCall call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const int64_t step = *static_cast<const int64_t *>(operands[0]);
    if (Status status = checkStep("learning_rate", step); !status.ok())
      return status;
    *static_cast<double *>(operands[1]) = rateOf(call_, step);
    return Status::success();
  }

private:
  LearningRateCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeLearningRate(const Invocation &invocation, const BuildOptions &) {
  const Call call(invocation);
  call.expectOperands(2);
  call.expectScalar(0, DType::I64);
  call.expectScalar(1, DType::F64);
  return std::make_unique<LearningRate>(parse(call));
}

} // namespace ds::kernels
