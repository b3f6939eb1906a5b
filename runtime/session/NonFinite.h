//===- NonFinite.h - --on-nonfinite ---------------------------------------===//
#pragma once

#include "core/Error.h"
#include "runtime/comm/Transport.h"
#include "runtime/executor/Scalar.h"
#include "runtime/session/StepReport.h"

#include <cstdint>
#include <string>

namespace ds::runtime {

/// What is done about a step whose loss or gradient norm is NaN or infinite.
enum class OnNonFinite : uint8_t {
  Stop,     ///< the run ends with NonFiniteError
  Skip,     ///< the step is undone, and the next takes the next samples
  Continue, ///< nothing, and an export takes the weights as they are
};

/// ds-run ends with code 3.
class NonFiniteError : public Error {
public:
  using Error::Error;
};

/// A metric of rank 0's that is NaN or infinite, if one is; of fp16, whose plans leave such steps out, the loss scale
/// if it can get no smaller. The value of rank 0 is the metric (plan.proto), so it
/// decides for all ranks.
struct NonFinite {
  enum class Metric : uint8_t { None, Loss, GradientNorm, EvaluationLoss, LossScale };

  Metric metric = Metric::None;
  Scalar value;

  static NonFinite of(const StepReport &report) noexcept;
  static NonFinite of(const EvaluationReport &report) noexcept;

  bool found() const noexcept { return metric != Metric::None; }
  /// Makes it that of rank 0 everywhere. Every process calls it.
  void shareFromRankZero(Transport &transport);
  /// "loss is NaN on rank 0"
  std::string what() const;
  /// Of the step, or of the evaluation after it.
  NonFiniteError error(uint64_t step) const;
};

} // namespace ds::runtime
