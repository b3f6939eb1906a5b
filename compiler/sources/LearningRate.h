//===- LearningRate.h - DeepSpeed's schedules, a second time --------------===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ds::sources {

/// Updates, stairs of each half, and updates of a unit of the decay.
struct Cycle {
  int64_t up = 0, down = 0, upStairs = 0, downStairs = 0, decay = 0;
};

/// deepspeed/runtime/lr_schedules.py.
struct Schedule {
  std::string type = "constant";          ///< or one of DeepSpeed's names
  bool linear = false;                    ///< warm-up; else logarithmic
  double lr = 0;                          ///< the optimizer's
  double least = 0, most = 0;             ///< WarmupLR, WarmupDecayLR: warmup_min_lr, warmup_max_lr
  double leastRatio = 0, cosineRatio = 0; ///< WarmupCosineLR, of lr
  int64_t warmup = 0, total = 0;          ///< updates
  double slope = 0;                       ///< LRRangeTest: step rate; OneCycle: decay rate
  int64_t length = 1;                     ///< LRRangeTest: step size
  bool stairs = false;                    ///< LRRangeTest
  Cycle cycle = {};                       ///< OneCycle
};

/// The first beta of an update under OneCycle.
struct CycledMomentum {
  bool on = false; ///< else the optimizer's own
  double least = 0, most = 0, slope = 0;
  Cycle cycle = {};
};
double cycledMomentum(const CycledMomentum &momentum, int64_t number);

/// Of update `number`, counted from 0.
double learningRate(const Schedule &schedule, int64_t number);

/// Updates at which the schedule's pieces begin and end, their neighbours, and some between.
std::vector<int64_t> sampledUpdates(const Schedule &schedule);

} // namespace ds::sources
