//===- LearningRate.h - DeepSpeed's schedules, a second time --------------===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ds::sources {

/// deepspeed/runtime/lr_schedules.py.
struct Schedule {
  std::string type = "constant";          ///< or "WarmupLR", "WarmupDecayLR", "WarmupCosineLR"
  bool linear = false;                    ///< warm-up; else logarithmic
  double lr = 0;                          ///< the optimizer's
  double least = 0, most = 0;             ///< WarmupLR, WarmupDecayLR: warmup_min_lr, warmup_max_lr
  double leastRatio = 0, cosineRatio = 0; ///< WarmupCosineLR, of lr
  int64_t warmup = 0, total = 0;          ///< updates
};

/// Of update `number`, counted from 0.
double learningRate(const Schedule &schedule, int64_t number);

/// Updates at which the schedule's pieces begin and end, their neighbours, and some between.
std::vector<int64_t> sampledUpdates(const Schedule &schedule);

} // namespace ds::sources
