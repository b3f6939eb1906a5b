//===- StepRefusal.h - optimizer steps count from 0 -----------------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/cuda/Launch.h"

namespace ds::kernels::cuda {

inline Refusal stepRefusal(const char *kernel) {
  return [kernel](int64_t step) { return checkStep(kernel, step); };
}

} // namespace ds::kernels::cuda
