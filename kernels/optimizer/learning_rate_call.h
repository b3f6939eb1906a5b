//===- learning_rate_call.h - the call of learning_rate, and its schedules --===//
//
// The rate of update number j = step (from 0), in float64, DeepSpeed's schedules.
//
// With i = j - 1, w = max(2, warmup_num_steps), T = total_num_steps and the warm-up curve
//   g(i) = ln(i + 1) / ln(w) (warmup_type "log") or i / w ("linear"), for i < w:
//   constant        lr
//   WarmupLR        min at j = 0; min + (max - min) g; then max
//   WarmupDecayLR   as WarmupLR, but from i = w on g = max(0, (T - i) / max(1, T - w))
//   WarmupCosineLR  lr times: 0 at j = 0; r0 + (1 - r0) g; then c + (1 - c) (1 + cos(pi q)) / 2
//                   with q = min(1, (i - w + 1) / max(1, T - w)), r0 = warmup_min_ratio, c = cos_min_ratio
//   LRRangeTest     min (1 + rate j / size), j / size rounded down with a staircase
//   OneCycle        min + (max - min) scale(j) (one_cycle.h), then min / decay(j)
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/HostDevice.h"
#include "kernels/optimizer/one_cycle.h"

#include <cmath>
#include <cstdint>

namespace ds::kernels {

enum class Schedule { Constant, Warmup, WarmupDecay, WarmupCosine, RangeTest, OneCycle };

/// step, lr.
struct LearningRateCall {
  explicit LearningRateCall(const Call &call);
  void readWarmup(const Call &call);
  void readRangeTest(const Call &call);
  void readOneCycle(const Call &call);

  Schedule schedule = Schedule::Constant;
  double lr = 0;
  double minimum = 0, maximum = 0;      // WarmupLR, WarmupDecayLR, OneCycle; LRRangeTest: minimum
  double minRatio = 0, cosMinRatio = 0; // WarmupCosineLR
  bool logarithmic = true;
  double warmup = 2, total = 0;
  double rate = 0, size = 1; // LRRangeTest; OneCycle: rate of the decay
  bool staircase = false;    // LRRangeTest
  OneCycle cycle;
};

/// The rate of update number j >= 0.
inline DS_HOST_DEVICE double learningRateOf(const LearningRateCall &call, int64_t j) {
  if (call.schedule == Schedule::Constant)
    return call.lr;
  if (call.schedule == Schedule::RangeTest) {
    const double interval = double(j) / call.size;
    return call.minimum * (1 + call.rate * (call.staircase ? std::floor(interval) : interval));
  }
  if (call.schedule == Schedule::OneCycle)
    return call.cycle.isCycling(j) ? call.minimum + (call.maximum - call.minimum) * call.cycle.scale(j)
                                   : call.minimum / call.cycle.decay(j, call.rate);
  const bool cosine = call.schedule == Schedule::WarmupCosine;
  if (j == 0)
    return cosine ? 0 : call.minimum;
  const double i = double(j - 1), decaySteps = std::fmax(1.0, call.total - call.warmup);
  if (i < call.warmup) {
    const double g = call.logarithmic ? std::log(i + 1) / std::log(call.warmup) : i / call.warmup;
    return cosine ? call.lr * (call.minRatio + (1 - call.minRatio) * g)
                  : call.minimum + (call.maximum - call.minimum) * g;
  }
  if (cosine) {
    const double q = std::fmin(1.0, (i - call.warmup + 1) / decaySteps);
    return call.lr * (call.cosMinRatio + (1 - call.cosMinRatio) * (1 + std::cos(3.14159265358979323846 * q)) / 2);
  }
  if (call.schedule == Schedule::Warmup)
    return call.maximum;
  return call.minimum + (call.maximum - call.minimum) * std::fmax(0.0, (call.total - i) / decaySteps);
}

} // namespace ds::kernels
