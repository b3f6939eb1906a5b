//===- StepReport.h - what a run tells about itself -----------------------===//
#pragma once

#include "runtime/executor/Scalar.h"
#include "runtime/executor/Traffic.h"

#include <array>
#include <cstdint>
#include <optional>

namespace ds::runtime {

/// One optimizer step; metrics that the plan does not compute are empty.
struct StepReport {
  uint64_t step = 0; ///< counts from 1
  std::optional<Scalar> loss, gradientNorm, learningRate;
  std::optional<Scalar> lossScale; ///< of fp16, used in this step
  std::optional<Scalar> targets;   ///< labels that count, where the loss is weighed by them
  uint64_t length = 0;             ///< size of the plan's dimension, where it has several
  double seconds = 0;
  double samplesPerSecond = 0;
  double tokensPerSecond = 0; ///< 0: no input of the plan is a row of tokens
  /// Of the model's products, by all ranks; and as a share of what all ranks can do, where that was said (0: not).
  double modelFlopsPerSecond = 0, modelFlopsUtilization = 0;
  bool skipped = false;      ///< changed nothing: undone, or left out by the plan since a gradient overflowed
  bool scaleIsLeast = false; ///< skipped by the plan at the least loss scale
  bool redone = false;       ///< made its program's tail
};

/// One pass over the evaluation data.
struct EvaluationReport {
  uint64_t step = 0; ///< optimizer steps done before
  std::optional<Scalar> loss;
};

/// Kernels that are our own slower ones where a library was to be called. Goes to rank 0 as bytes.
struct FallbackReport {
  bool isCounted = false; ///< the device calls libraries
  uint64_t count = 0;
  std::array<char, 512> kernels{}; ///< "2 of kernel 'matmul' in bfloat16, 1 of ..."; cut where there are too many
};

/// What a rank used, counted by its allocators and by the system.
struct SummaryReport {
  uint32_t rank = 0;
  uint64_t deviceBytes = 0;
  uint64_t deviceTouchedBytes = 0; ///< of deviceBytes, those in pages that were ever touched
  uint64_t hostBytes = 0;
  uint64_t nvmeBytes = 0;
  uint64_t stepsRedone = 0;            ///< that made their program's tail
  Traffic trafficPerStep;              ///< of the last step
  uint64_t anonymousResidentBytes = 0; ///< of its process, which may have other ranks too
  FallbackReport fallbacks;            ///< as those
};

} // namespace ds::runtime
