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

  /// The rate of update number j >= 0.
  DS_HOST_DEVICE double at(int64_t j) const;
};

inline DS_HOST_DEVICE double LearningRateCall::at(int64_t j) const {
  if (schedule == Schedule::Constant)
    return lr;
  if (schedule == Schedule::RangeTest) {
    const double interval = double(j) / size;
    return minimum * (1 + rate * (staircase ? std::floor(interval) : interval));
  }
  if (schedule == Schedule::OneCycle)
    return cycle.isCycling(j) ? minimum + (maximum - minimum) * cycle.scale(j) : minimum / cycle.decay(j, rate);
  const bool cosine = schedule == Schedule::WarmupCosine;
  if (j == 0)
    return cosine ? 0 : minimum;
  const double i = double(j - 1), decaySteps = std::fmax(1.0, total - warmup);
  if (i < warmup) {
    const double g = logarithmic ? std::log(i + 1) / std::log(warmup) : i / warmup;
    return cosine ? lr * (minRatio + (1 - minRatio) * g) : minimum + (maximum - minimum) * g;
  }
  if (cosine) {
    const double q = std::fmin(1.0, (i - warmup + 1) / decaySteps);
    return lr * (cosMinRatio + (1 - cosMinRatio) * (1 + std::cos(3.14159265358979323846 * q)) / 2);
  }
  if (schedule == Schedule::Warmup)
    return maximum;
  return minimum + (maximum - minimum) * std::fmax(0.0, (total - i) / decaySteps);
}

} // namespace ds::kernels
